"""Draw every page of `results` again: run the commands that results/README.md shows.

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
    for page in (*fill_pages.PAGES, *fill_pages.QUOTING):
        page.write_text(fill_pages.fill(page), encoding="utf-8")
