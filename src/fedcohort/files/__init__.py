"""Files of any kind: written whole or not at all, and read back without running code.

These modules know formats (npz, JSON, TOML, CSV, safetensors) and no file names. Every file that
is read back carries a checksum, see `fedcohort.files.seal`. What a run
folder holds is known to `fedcohort.lab.folder` alone.
"""

from fedcohort.files.arrays import check_plain, load_arrays, save_arrays
from fedcohort.files.paths import (
    atomic_write,
    check_exists,
    check_file,
    check_folder,
    digest_file,
    is_draft,
    locked,
)
from fedcohort.files.seal import sealed_write
from fedcohort.files.state import (
    load_state,
    pack_json,
    read_plain_state,
    save_state,
    unpack_json,
)
from fedcohort.files.text import (
    parse_json,
    parse_json_lines,
    read_json_lines,
    read_json_table,
    read_sealed_text,
    read_text,
    read_toml,
    save_csv,
    to_json_line,
    to_toml,
    write_bytes,
    write_json,
    write_sealed_text,
    write_text,
)

__all__ = [
    "atomic_write",
    "check_exists",
    "check_file",
    "check_folder",
    "check_plain",
    "digest_file",
    "is_draft",
    "load_arrays",
    "load_state",
    "locked",
    "pack_json",
    "parse_json",
    "parse_json_lines",
    "read_json_lines",
    "read_json_table",
    "read_plain_state",
    "read_sealed_text",
    "read_text",
    "read_toml",
    "save_arrays",
    "save_csv",
    "save_state",
    "sealed_write",
    "to_json_line",
    "to_toml",
    "unpack_json",
    "write_bytes",
    "write_json",
    "write_sealed_text",
    "write_text",
]
