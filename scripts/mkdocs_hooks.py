"""Steps of the site's build that MkDocs does not have: included files, results pages, command help.

A line that ends with `<!-- include: FILE -->` is replaced by a Markdown file of the repository;
the words before it are for readers of the repository. Links of the file are adapted to the site,
and its headings move one level down if the including page has a title of its own.
`<!-- help -->` is replaced by what `--help` prints for every command, and `<!-- settings -->` by a
table of the settings of a comparison.
"""

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
INCLUDE = re.compile(r"^[^\n]*<!-- include: (?P<file>[^\n]+?) -->$", flags=re.MULTILINE)
HELP = "<!-- help -->"
SETTINGS = "<!-- settings -->"
LINK = re.compile(r"(?P<open>!?\[(?P<text>[^\]]*)\])\((?P<target>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
CODE = re.compile(r"(^```.*?^```$)", flags=re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"(?s)(---\n.*?---\n\s*)?# ")

# Results files that become part of the site, beside the results pages themselves.
ATTACHMENTS = (".svg", ".png", ".csv")

# Repository files that have a page of the site under another name.
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "DEVIATIONS.md": "paper/errata.md",
    "examples/flower-quickstart": "how-to/flower.md",
    "examples/flower-quickstart/README.md": "how-to/flower.md",
    "results": "paper/results.md",
    "results/README.md": "paper/results.md",
    "results/what-helps.md": "concepts/what-helps.md",
    "README.md": "index.md",
}


def on_files(files: Files, config: Any) -> Files:
    """Add the results pages and the pictures and tables beside them."""
    for path in sorted((ROOT / "results").rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        is_page = path.parent == ROOT / "results" and path.suffix == ".md"
        if path.suffix in ATTACHMENTS or (is_page and name not in PAGES):
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Fill in the includes and the command help, and adapt the links of results pages."""
    uri = PurePosixPath(page.file.src_uri)
    if uri.parts[0] == "results":
        markdown = adapt_links(markdown, uri.parent, uri, files)

    has_title = TITLE.match(markdown) is not None

    def replace(match: re.Match[str]) -> str:
        return include(match["file"].strip(), uri, files, has_title)

    markdown = INCLUDE.sub(replace, markdown)
    if HELP in markdown:
        markdown = markdown.replace(HELP, help_of_all_commands())
    if SETTINGS in markdown:
        markdown = markdown.replace(SETTINGS, table_of_settings())
    return markdown


def include(name: str, uri: PurePosixPath, files: Files, has_title: bool) -> str:
    """Return the text of a repository file, ready for the page at `uri`."""
    path = ROOT / name
    if not path.is_file():
        raise FileNotFoundError(f"{uri} includes {name}, which does not exist")

    text = path.read_text(encoding="utf-8")
    text = adapt_links(text, PurePosixPath(name).parent, uri, files)
    return lower_headings(text) if has_title else text


def lower_headings(text: str) -> str:
    """Move every heading one level down; a # inside a code block is no heading."""
    parts = CODE.split(text)
    for index, part in enumerate(parts):
        if not part.startswith("```"):
            parts[index] = re.sub(r"^#", "##", part, flags=re.MULTILINE)
    return "".join(parts)


def adapt_links(text: str, folder: PurePosixPath, uri: PurePosixPath, files: Files) -> str:
    """Point links at the site's own copy; a target that the site lacks becomes plain code."""

    def adapt(match: re.Match[str]) -> str:
        if "://" in match["target"]:
            return match[0]
        target = os.path.normpath(folder / match["target"])
        page = PAGES.get(target, target.removeprefix("docs/"))
        if files.get_file_from_path(page) is None:
            label = match["text"]
            return label if label.startswith("`") else f"`{label}`"
        return f"{match['open']}({os.path.relpath(page, uri.parent)}{match['anchor'] or ''})"

    return LINK.sub(adapt, text)


def table_of_settings() -> str:
    """Return the fields of a comparison with their defaults and meanings, as a table."""
    from fedcohort.lab.config import ComparisonConfig

    lines = ["| setting | default | meaning |", "|---|---|---|"]
    for field in dataclasses.fields(ComparisonConfig):
        meaning = field.metadata["help"].replace("|", "\\|")
        lines.append(f"| `{field.name}` | `{field.default!r}` | {meaning} |")
    return "\n".join(lines)


def help_of_all_commands() -> str:
    """Return the help of the program and of each command, one section each."""
    from fedcohort.cli import app

    names = [""]
    for command in app.registered_commands:
        if command.callback:
            names.append(command.name or command.callback.__name__)

    sections = []
    for name in names:
        sections.append(f"## fedcohort {name}\n\n```text\n{help_of(name)}\n```")
    return "\n\n".join(sections)


def help_of(command: str) -> str:
    """Return the help of one command, as wide as a page."""
    code = "import sys; sys.argv[0] = 'fedcohort'; from fedcohort.cli import main; main()"
    arguments = [command, "--help"] if command else ["--help"]
    environ = {**os.environ, "COLUMNS": "92", "TERMINAL_WIDTH": "92", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        encoding="utf-8",
        env=environ,
        check=True,
    )
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    return "\n".join(lines).strip()
