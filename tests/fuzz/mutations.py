"""Changes of bytes, JSON, TOML and arrays, each drawn from a random generator."""

import io
import json
import random
import zipfile
from typing import Any

import numpy as np

CHECKSUM = "fedcohort-sha256"  # the key that holds it in JSON
DEPTH = 100_000  # nesting that no parser's stack survives
SCALARS: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e308, float("nan"),
    float("inf"), "", "random", "\x00", "\ud800", "x" * 300, [], {}, [1, 2], {"a": 1}, [[]],
)  # fmt: skip
NUMPY_TYPES = ("float64", "float32", "float16", "int64", "uint8", "bool", "complex128", "<U5", "S3")


def change_bytes(rng: random.Random, content: bytes) -> bytes:
    """Return content with some bytes flipped, cut, repeated, added or replaced."""
    changed = rng.choice(BYTE_CHANGES)(rng, content)
    return bytes(changed)


def flip_bits(rng: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut(rng: random.Random, content: bytes) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def cut_out(rng: random.Random, content: bytes) -> bytes:
    start = rng.randrange(len(content) + 1)
    return content[:start] + content[start + rng.randrange(1, 40) :]


def repeat(rng: random.Random, content: bytes) -> bytes:
    start = rng.randrange(len(content) + 1)
    end = min(len(content), start + rng.randrange(1, 200))
    return content[:end] + content[start:end] + content[end:]


def append(rng: random.Random, content: bytes) -> bytes:
    return content + rng.randbytes(rng.randrange(1, 20))


def overwrite(rng: random.Random, content: bytes) -> bytes:
    start = rng.randrange(len(content) + 1)
    noise = rng.randbytes(rng.randrange(1, 30))
    return content[:start] + noise + content[start + len(noise) :]


def zero_block(rng: random.Random, content: bytes) -> bytes:
    """Write zeros over a block, as a file system may after a power cut."""
    size = rng.choice((8, 64, 512))
    start = rng.randrange(len(content) // size + 1) * size
    return content[:start] + bytes(len(content[start : start + size])) + content[start + size :]


def noise(rng: random.Random, content: bytes) -> bytes:
    return rng.randbytes(rng.choice((0, 1, 7, 100, len(content))))


def nested(rng: random.Random, content: bytes) -> bytes:
    """Return brackets that no parser's stack survives."""
    opening, closing = rng.choice((("[", "]"), ('{"a":', "}"), ("a = [", "]"), ("(", ")")))
    return (opening * DEPTH + rng.choice(("", closing * DEPTH))).encode()


BYTE_CHANGES = (
    flip_bits, flip_bits, flip_bits, cut, cut_out, repeat, append, overwrite, zero_block, noise,
    nested,
)  # fmt: skip


def change_value(rng: random.Random, value: Any) -> Any:
    """Return a nested value of JSON with one part replaced, removed, added or renamed."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        changed = dict(value)
        key = rng.choice(list(changed))
        how = rng.random()
        if how < 0.7:
            changed[key] = change_value(rng, changed[key])
        elif how < 0.85:
            del changed[key]
        else:
            changed[f"{key}?"] = changed.pop(key)
        return changed
    if isinstance(value, list) and value and rng.random() < 0.85:
        changed_list = list(value)
        place = rng.randrange(len(changed_list))
        how = rng.random()
        if how < 0.7:
            changed_list[place] = change_value(rng, changed_list[place])
        elif how < 0.85:
            del changed_list[place]
        else:
            changed_list.insert(place, changed_list[place])
        return changed_list
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.3:
        return value + rng.choice((-1, 1))
    return rng.choice(SCALARS)


def change_json(rng: random.Random, content: bytes) -> bytes:
    """Return JSON, or lines of JSON, with one value changed or lines moved or removed."""
    lines = content.decode().splitlines()
    if not all(line.startswith("{") and line.endswith("}") for line in lines):
        return change_table(rng, content.decode()).encode()
    place = rng.randrange(len(lines))
    how = rng.random()
    if how < 0.7:
        lines[place] = change_table(rng, lines[place])
    elif how < 0.8:
        del lines[place]
    elif how < 0.9:
        lines.insert(place, rng.choice(lines))
    else:
        rng.shuffle(lines)
    return "".join(f"{line}\n" for line in lines).encode()


def change_table(rng: random.Random, text: str) -> str:
    """Return a JSON table with one value changed below its checksum, if it has one.

    Without the checksum the file would be one of an older version, which is trusted.
    """
    table = json.loads(text)
    checksum = table.pop(CHECKSUM, None)
    changed = change_value(rng, table)
    if checksum is not None and isinstance(changed, dict):
        changed = {CHECKSUM: checksum, **changed}
    return json.dumps(changed)


def change_toml(rng: random.Random, content: bytes) -> bytes:
    """Return settings with one line changed, removed or repeated."""
    lines = content.decode().splitlines()
    place = rng.randrange(len(lines))
    name = lines[place].partition(" = ")[0]
    how = rng.random()
    if how < 0.7:
        lines[place] = f"{name} = {rng.choice(TOML_VALUES)}"
    elif how < 0.85:
        del lines[place]
    else:
        lines.append(rng.choice((lines[place], f"{name}x = 1", "[table]", "a.b = 1", "= 1")))
    return "".join(f"{line}\n" for line in lines).encode(errors="surrogatepass")


TOML_VALUES = (
    "0", "1", "2", "3", "-1", "0.5", "1.5", "-0.5", "nan", "inf", "-inf", "true", "false", '""',
    '"random"', '"\\u0000"', '"x.npz"', "[]", "[0]", "[1, 2]", "[0.5, 0.5]", "[true]", '["random"]',
    '["random", "random"]', "[[1]]", "[{}]", "{a = 1}", "2147483647", "2147483648",
    "9223372036854775807", "9223372036854775808", "1e400", "0x" + "f" * 5000, "9" * 5000, "0b1",
    "1979-05-27", "07:32:00", "'", '"""', "", "?", "1 2", "[" * DEPTH, "[" * 50 + "]" * 50,
)  # fmt: skip


def change_arrays(rng: random.Random, content: bytes) -> bytes:
    """Return an npz file with one array of another shape, type, name or content."""
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    name = rng.choice(list(arrays))
    how = rng.randrange(4)
    if how == 0:
        del arrays[name]
    elif how == 1:
        arrays[f"{name}x"] = arrays.pop(name)
    elif how == 2:
        arrays[name] = arrays[rng.choice(list(arrays))]
    else:
        arrays[name] = change_array(rng, arrays[name])
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return with_comment_of(content, buffer)


def with_comment_of(content: bytes, buffer: io.BytesIO) -> bytes:
    """Return a new archive with the comment of an old one, where a checksum is kept.

    Without it the file would be one of an older version, which is trusted.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = before.comment
    return buffer.getvalue()


def change_array(rng: random.Random, array: Any) -> Any:
    """Return an array of another shape or type, or with other values."""
    how = rng.randrange(7)
    if how == 0:
        return array[:-1] if array.ndim else array[None]
    if how == 1:
        return array[None]
    if how == 2:
        return array.reshape(-1)
    if how == 3:
        return np.zeros(rng.choice(((), (0,), (0, 3), (2, 2), (1, 1, 1, 1))), array.dtype)
    if how == 4:
        with np.errstate(all="ignore"):
            kind = rng.choice(NUMPY_TYPES)
            return np.zeros(array.shape, kind) if array.dtype.kind in "US" else array.astype(kind)
    changed = np.array(array)
    if changed.size and changed.dtype.kind in "iuf":
        limits = np.finfo if changed.dtype.kind == "f" else np.iinfo
        values = [0, 1, limits(changed.dtype).max, limits(changed.dtype).min]
        if changed.dtype.kind == "f":
            values += [np.nan, np.inf, -1]
        changed.reshape(-1)[rng.randrange(changed.size)] = rng.choice(values)
    return changed


def change_zip(rng: random.Random, content: bytes) -> bytes:
    """Return an npz file whose members are damaged inside intact archives, headers included."""
    members = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            members[name] = archive.read(name)
    name = rng.choice(list(members))
    data = members[name]
    header = rng.random() < 0.7
    members[name] = (
        change_bytes(rng, data[:128]) + data[128:] if header else change_bytes(rng, data)
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for member, value in members.items():
            archive.writestr(member, value)
    return with_comment_of(content, buffer)


def change_file(rng: random.Random, name: str, content: bytes) -> bytes:
    """Return the content of a file changed in a way that suits its format, or in any way."""
    if rng.random() < 0.5 or not content:
        return change_bytes(rng, content)
    if name.endswith((".json", ".jsonl")):
        return change_json(rng, content)
    if name.endswith(".toml"):
        return change_toml(rng, content)
    if name.endswith(".npz"):
        return rng.choice((change_arrays, change_zip))(rng, content)
    return change_bytes(rng, content)
