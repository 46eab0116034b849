"""Command-line flags and settings files: strange values of every flag, alone and in pairs."""

import contextlib
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from command_line import run, without_drawings
from fuzz_cases import Play, Surface, require_name
from mutations import TOML_VALUES, change_bytes, change_toml

from fedcohort.files import read_toml, to_toml
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.result import identity
from fedcohort.lab.runs import run_keys

FOLDERS = Path(__file__).parents[1] / "compatibility" / "folders"
NUMBERS = (
    "0", "-1", "1", "2", "3", "0.5", "-0.5", "nan", "inf", "-inf", "", " ", "word", "none", "true",
    "2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "1e309", "1e-320",
    "-0", "0x10", "1_0", "٣", " 3 ", "1,2", "0,0", "1,,2", ",", "1;2", "9" * 5000, "½",
)  # fmt: skip
WORDS = (
    "", "random", "e3cs-0.5", "random,random", "pow-d", "fedcs", "auto", "iid", "paper", "recorded",
    "bernoulli", "successive", "nonsense", "RANDOM", "random,", "😀", "\udcff", "-", "--", "a\nb",
    "\x1b[31m", "x" * 300, "cpu", "cuda", "meta", "cpu:7", "mps", "digits", "mlp", "small-cnn",
    "together", "one-by-one", "float32", "bf16", "unit", "tensorboard", "[bold]",
    "none.py:x", "file:x", "os:getcwd", "math:pi", "numpy:none", "a:", ":", "x.py", "..a:b",
)  # fmt: skip
SIMULATE = {
    "--clients": "5", "--cohort": "2", "--rounds": "3", "--seeds": "1", "--selectors": "random",
}  # fmt: skip
COMPARE = {
    "--selectors": "random", "--partitions": "iid", "--aggregations": "paper", "--seeds": "1",
    "--clients": "5", "--cohort": "2", "--rounds": "1", "--epochs": "1", "--mode": "together",
    "--slots": "2",
}  # fmt: skip
REPRODUCE = {"--rounds": "2", "--seeds": "1", "--selectors": "random"}
# A comparison of that many rounds is no mistake, only long.
ENDLESS = {"--rounds": ("2147483647",)}
SIMULATE_FLAGS = (
    "--selectors", "--clients", "--cohort", "--rounds", "--seeds", "--first-seed", "--rates",
    "--world", "--world-file", "--eta", "--sampler", "--out",
)  # fmt: skip
REPRODUCE_FLAGS = (
    "--seeds", "--first-seed", "--rounds", "--model", "--selectors", "--partitions", "--mus",
    "--scaling", "--sampler", "--candidates", "--device", "--precision", "--data", "--time-budget",
    "--out", "--from", "--export", "--devices", "--shard", "--ray",
)  # fmt: skip
ADVISE = {"--clients": "6", "--cohort": "2", "--rates": "0.5", "--rounds": "12"}
ADVISE_FLAGS = (
    "--clients", "--cohort", "--rates", "--deadline", "--seconds", "--spread", "--off",
    "--round-seconds", "--selector", "--selectors", "--needed", "--keep", "--fair",
    "--model-bytes", "--rounds", "--seed", "--out",
)  # fmt: skip
COMPARE_FLAGS = (
    "--config", "--out", "--data", "--log", "--devices", "--shard", "--ray",
    *(f"--{field.name.replace('_', '-')}" for field in fields(ComparisonConfig)),
)  # fmt: skip
SWITCHES = ("--refill", "--no-refill", "--compiled", "--no-compiled")


def prepare_flags(scratch: Path) -> Play:
    paths_folder = scratch / "paths"
    paths = make_paths(paths_folder)
    out = scratch / "out"

    def play(rng: random.Random) -> None:
        shutil.rmtree(out, ignore_errors=True)
        arguments = rng.choice(COMMANDS)(rng, paths)
        if "--out" not in arguments and arguments[0] in ("simulate", "compare", "reproduce"):
            arguments += ["--out", str(out)]
        # Words are paths too: what a command writes there must not land in the working folder.
        with contextlib.chdir(paths_folder), without_drawings():
            run(arguments)

    return play


def make_paths(folder: Path) -> list[str]:
    """Return paths of every kind that a flag may name."""
    folder.mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / "file").write_text("text")
    (folder / "binary.npz").write_bytes(bytes(range(256)))
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "zero.npz").symlink_to("/dev/zero")
    inside = (
        "empty", "file", "file/below", "binary.npz", "pipe", "pipe/below", "loop", "loop/below",
        "zero.npz", "missing", "missing/below.npz", "x" * 300, "a\nb", "\udcff\udcfe", "[bold]",
    )  # fmt: skip
    # Nobody, not even root, can write into /proc or below a device.
    outside = ("/dev/zero", "/dev/full", "/dev/null", "/dev/null/below", "/proc/below", "", ".")
    return [*(str(folder / name) for name in inside), *outside]


def strange_value(rng: random.Random, flag: str, paths: list[str]) -> str:
    values = rng.choice((NUMBERS, NUMBERS, WORDS, paths))
    value = rng.choice(values)
    if flag == "--out":
        value = rng.choice([path for path in paths if path not in ("", ".")])
    return value


def compare(rng: random.Random, paths: list[str]) -> list[str]:
    given = with_strange_values(rng, COMPARE, COMPARE_FLAGS, paths)
    for flag, values in ENDLESS.items():
        if given[flag].strip() in values:
            given[flag] = "1"
    arguments = ["compare", *spread(given)]
    return arguments + rng.choice(([], [], ["--json"], ["--resume"], [rng.choice(SWITCHES)]))


def simulate(rng: random.Random, paths: list[str]) -> list[str]:
    given = with_strange_values(rng, SIMULATE, SIMULATE_FLAGS, paths)
    return ["simulate", *spread(given), *rng.choice(([], ["--json"], ["--overwrite"]))]


def reproduce(rng: random.Random, paths: list[str]) -> list[str]:
    given = with_strange_values(rng, REPRODUCE, REPRODUCE_FLAGS, paths)
    name = rng.choice(("figure3", "figure4", "", "nonsense", rng.choice(paths)))
    if rng.random() < 0.3:
        given["--from"] = str(FOLDERS / rng.choice(("export", "compare", "flower")))
        name = rng.choice(("table3", "claims", "all", "regret", name))
        given.setdefault("--dataset", "digits")
    return ["reproduce", name, *spread(given)]


def advise(rng: random.Random, paths: list[str]) -> list[str]:
    given = with_strange_values(rng, ADVISE, ADVISE_FLAGS, paths)
    if given["--rounds"].strip() in ENDLESS["--rounds"]:
        given["--rounds"] = "12"
    source = rng.choice(([], [], [rng.choice((*paths, *WORDS))]))
    if rng.random() < 0.2:
        return ["replay", rng.choice((*paths, *WORDS)), f"--selectors={rng.choice(WORDS)}"]
    return ["advise", *source, *spread(given), *rng.choice(([], ["--json"]))]


def read_only(rng: random.Random, paths: list[str]) -> list[str]:
    command = rng.choice(("report", "watch", "list", "bench", "nonsense", "--version", ""))
    arguments = [command, rng.choice((*paths, *WORDS))]
    if command == "watch":
        arguments += ["--once", "--every", rng.choice(NUMBERS)]
    if command == "bench":
        arguments = ["bench", rng.choice(("", "nonsense", "\udcff", "a\nb"))]
    return arguments


COMMANDS: tuple[Callable[[random.Random, list[str]], list[str]], ...] = (
    compare, compare, compare, simulate, simulate, reproduce, read_only, advise,
)  # fmt: skip


def with_strange_values(
    rng: random.Random, base: dict[str, str], flags: tuple[str, ...], paths: list[str]
) -> dict[str, str]:
    """Return the flags of a tiny run, one or two of them with a strange value."""
    given = dict(base)
    for _ in range(rng.choice((1, 1, 2))):
        flag = rng.choice(flags)
        if flag not in ("--refill", "--compiled"):
            given[flag] = strange_value(rng, flag, paths)
    return given


def spread(given: dict[str, str]) -> list[str]:
    """Return flags as arguments; `=` keeps a value that begins with a dash apart from flags."""
    return [f"{flag}={value}" for flag, value in given.items()]


def prepare_settings(scratch: Path) -> Play:
    scratch.mkdir(parents=True)
    path = scratch / "settings.toml"
    names = [field.name for field in fields(ComparisonConfig)]
    whole = to_toml(ComparisonConfig().as_dict()).encode()

    def play(rng: random.Random) -> None:
        how = rng.random()
        if how < 0.4:
            content = change_toml(rng, whole)
        elif how < 0.6:
            content = change_bytes(rng, whole)
        else:
            chosen = rng.sample(names, rng.randrange(1, 4))
            lines = [f"{name} = {rng.choice(TOML_VALUES)}\n" for name in chosen]
            content = "".join(lines).encode()
        path.write_bytes(content)
        read_and_write_again(path, names)

    return play


def read_and_write_again(path: Path, names: list[str]) -> None:
    """Read settings as `compare --config` does; what is accepted must survive a round trip."""
    try:
        config = ComparisonConfig.from_dict(read_toml(path))
        run_keys(config)
    except ValueError as error:
        require_name(error, path, "setting", *names, *(name.removesuffix("s") for name in names))
        raise
    path.write_text(to_toml(config.as_dict()))
    again = ComparisonConfig.from_dict(read_toml(path))
    if identity(again) != identity(config):
        raise AssertionError(f"{config} became {again}")


SURFACES = (Surface("flags", prepare_flags, 16), Surface("settings", prepare_settings, 18))
