"""Text is UTF-8 on every machine, whatever its locale says."""

import subprocess
import sys

WRITE_AND_READ = """
import sys, warnings
from pathlib import Path
from fedcohort import files

warnings.simplefilter("error", EncodingWarning)  # raised where a file has the locale's encoding
folder = Path(sys.argv[1])
files.write_text(folder / "text", "Zürich")
assert files.read_text(folder / "text") == "Zürich"
files.write_sealed_text(folder / "sealed.toml", files.to_toml({"city": "Zürich"}))
assert files.read_toml(folder / "sealed.toml", is_sealed=True) == {"city": "Zürich"}
assert files.read_toml(folder / "sealed.toml") == {"city": "Zürich"}
files.save_csv(folder / "table.csv", [{"city": "Zürich"}])
assert (folder / "table.csv").read_bytes() == "city\\r\\nZürich\\r\\n".encode()
"""


def test_texts_are_written_and_read_without_the_encoding_of_the_locale(tmp_path):
    command = [sys.executable, "-X", "warn_default_encoding", "-c", WRITE_AND_READ, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
