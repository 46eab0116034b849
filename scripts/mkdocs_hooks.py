"""What the site takes from elsewhere: files of the repository, and the help of the command line.

`<!-- include: FILE -->` is replaced by a Markdown file of the repository, its links made to fit, its headings one level lower
if the page has a title of its own; `<!-- include: FILE, or: TEXT -->` by the text where there is no such file.
`<!-- help -->` is replaced by what `--help` prints of every command.
"""

import os
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
INCLUDE = re.compile(
    r"<!-- include: (?P<file>[^,\n]+?)(?:, or: (?P<otherwise>.*?))? -->", re.DOTALL
)
HELP = "<!-- help -->"
LINK = re.compile(r"(?P<open>!?\[(?P<text>[^\]]*)\])\((?P<target>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
SHOWN = (".svg", ".png", ".csv")  # files beside an included one that a page may show or link to
PAGES = {  # where included files and folders live on the site
    "CONTRIBUTING.md": "contributing.md",
    "DEVIATIONS.md": "paper/errata.md",
    "examples/flower-quickstart": "how-to/flower.md",
    "examples/flower-quickstart/README.md": "how-to/flower.md",
    "results/README.md": "paper/results.md",
    "README.md": "index.md",
}


def on_files(files: Files, config: Any) -> Files:
    """Add the pictures and tables that lie beside the results."""
    for path in sorted((ROOT / "results").rglob("*")):
        if path.suffix in SHOWN:
            files.append(
                File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path))
            )
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Put in what the page asks for."""
    here = PurePosixPath(page.file.src_uri)
    titled = bool(re.match(r"(?s)(---\n.*?---\n\s*)?# ", markdown))
    markdown = INCLUDE.sub(
        lambda found: included(found["file"].strip(), found["otherwise"], here, files, titled),
        markdown,
    )
    return markdown.replace(HELP, all_help()) if HELP in markdown else markdown


def included(
    name: str, otherwise: str | None, here: PurePosixPath, files: Files, titled: bool
) -> str:
    """Return the text of a file for the page `here`; where there is none, what to say instead."""
    path = ROOT / name
    if not path.is_file():
        if otherwise is None:
            raise FileNotFoundError(f"{here} includes {name}, which is not there")
        return otherwise.strip()
    text = LINK.sub(
        lambda found: moved(found, PurePosixPath(name).parent, here, files),
        path.read_text(encoding="utf-8"),
    )
    return lowered(text) if titled else text


def lowered(text: str) -> str:
    """Return the text with every heading one level lower; a # inside a block is no heading."""
    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(
        part if part.startswith("```") else re.sub(r"^#", "##", part, flags=re.MULTILINE)
        for part in parts
    )


def moved(found: re.Match[str], folder: PurePosixPath, here: PurePosixPath, files: Files) -> str:
    """Return a link as the page needs it: to the site's own copy, or without a link where the site has none."""
    if "://" in found["target"]:
        return found[0]
    target = os.path.normpath(folder / found["target"])
    on_site = PAGES.get(target, target.removeprefix("docs/"))
    if files.get_file_from_path(on_site) is None:
        return f"{found['text']}" if found["text"].startswith("`") else f"`{found['text']}`"
    return f"{found['open']}({os.path.relpath(on_site, here.parent)}{found['anchor'] or ''})"


def all_help() -> str:
    """Return the help of the program and of each of its commands, a section each, in the order of the program."""
    from fedcohort.cli import app

    names = [
        command.name or command.callback.__name__
        for command in app.registered_commands
        if command.callback
    ]
    return "\n\n".join(
        f"## fedcohort {name}\n\n```text\n{help_of(name)}\n```" for name in ("", *names)
    )


def help_of(command: str) -> str:
    """Return the help of a command, as wide as a page."""
    code = "import sys; sys.argv[0] = 'fedcohort'; from fedcohort.cli import main; main()"
    environ = {**os.environ, "COLUMNS": "92", "TERMINAL_WIDTH": "92", "NO_COLOR": "1"}
    words = [sys.executable, "-c", code, *([command] if command else []), "--help"]
    shown = subprocess.run(
        words, capture_output=True, encoding="utf-8", env=environ, check=True
    ).stdout
    return "\n".join(line.rstrip() for line in shown.splitlines()).strip()
