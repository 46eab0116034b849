"""Draw every page with measured numbers again: run the commands that results/README.md shows.

`make results` calls it after new records were added.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import fill_pages
import list_runs

ROOT = Path(__file__).parents[1]


def commands() -> list[list[str]]:
    """Return the arguments of the `fedcohort` commands of the page."""
    text = (ROOT / "results/README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    lines = block.replace("\\\n", " ").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("fedcohort ")]


if __name__ == "__main__":
    fedcohort = Path(sys.executable).with_name("fedcohort")
    for arguments in commands():
        subprocess.run([fedcohort, *arguments], cwd=ROOT, check=True)
    list_runs.REPORT.write_text(list_runs.write(), encoding="utf-8")
    fill_pages.fill_all()
    page = [sys.executable, "benchmarks/run.py", "--page", "benchmarks/records"]
    subprocess.run(page, cwd=ROOT, check=True)
