"""Follow a page like a careful reader: write its files, run its code, check its commands.

```python            runs, with the names defined by earlier blocks of the page
```toml title="x"    any block with a title is also written to a file of that name
```text title="Output"    must equal what the Python block before it printed
```bash              every command and flag must exist; below a line <!-- run --> ours also run
<!-- not run: why -->     above a Python block: the block is only compiled
"""

import contextlib
import io
import re
import shlex
import sys
import tomllib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from fedcohort import cli

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
RESULTS = sorted((ROOT / "results").glob("*.md"))
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "DEVIATIONS.md",
    ROOT / "examples/flower-quickstart/README.md",
    *RESULTS,
    *DOCS,
]
BLOCK = re.compile(
    r"(?:<!-- (?P<mark>run|not run: [^>]+?) -->\n)?"
    r"^```(?P<kind>\w*)(?P<info>[^\n]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
TITLE = re.compile(r'title="([^"]+)"')
FLOWER_COMMANDS = ("flower-superlink", "flower-supernode", "flwr")
SHELL_COMMANDS = ("cd", "export", "git", "pytest")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `line` is the line of the page before its first."""

    kind: str
    title: str
    mark: str
    text: str
    line: int

    @property
    def commands(self) -> list[list[str]]:
        """The words of each command of a shell block, without comments and background marks."""
        commands = []
        for line in self.text.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removesuffix("&"), comments=True)
            if words:
                commands.append(words)
        return commands


@dataclass
class Reader:
    """Someone who types everything that a page shows, in a folder of their own."""

    page: Path
    folder: Path
    names: dict[str, Any] = field(default_factory=dict)
    printed: str = ""

    def read(self) -> None:
        """Follow all blocks of the page in order."""
        for block in blocks(self.page):
            try:
                self.follow(block)
            except BaseException as error:
                error.add_note(f"{self.page}, line {block.line}")
                raise

    def follow(self, block: Block) -> None:
        """Write, run or check one block."""
        if block.title == "Output":
            assert self.printed.split() == block.text.split(), f"printed was:\n{self.printed}"
            return

        if block.title:
            path = self.folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)

        if block.kind == "python":
            self.run_python(block)
        elif block.kind == "toml":
            tomllib.loads(block.text)
        elif block.kind == "bash":
            self.run_shell(block)

    def run_python(self, block: Block) -> None:
        """Run a block; line numbers in its tracebacks are those of the page."""
        code = compile("\n" * block.line + block.text, str(self.page), "exec")
        if block.mark.startswith("not run"):
            return

        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, self.names)
        self.printed = out.getvalue()

    def run_shell(self, block: Block) -> None:
        """Check every command, and run those of fedcohort if the block is marked so."""
        for words in block.commands:
            check_command(words, self.page.parent)
            if block.mark == "run" and words[0] == "fedcohort":
                run_fedcohort(words[1:])


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page; fail if one is indented or does not end."""
    text = page.read_text(encoding="utf-8")
    matches = list(BLOCK.finditer(text))
    fences = re.findall(r"^\s*```", text, re.MULTILINE)
    assert 2 * len(matches) == len(fences), f"{page} has blocks that are indented or do not end"

    for match in matches:
        title = TITLE.search(match["info"])
        yield Block(
            kind=match["kind"],
            title=title[1] if title else "",
            mark=match["mark"] or "",
            text=match["text"],
            line=text[: match.start("text")].count("\n"),
        )


def check_command(words: list[str], folder: Path) -> None:
    """Fail if a command does not exist, or does not have its flags."""
    name, *arguments = words
    if name == "fedcohort":
        parse_fedcohort(arguments)
    elif name in FLOWER_COMMANDS:
        check_flower_flags(name, arguments)
    elif name == "make":
        check_make_targets(arguments)
    elif name in ("pip", ".venv/bin/pip"):
        check_extras(arguments)
    elif name == "python":
        check_script(arguments[0], folder)
    else:
        assert name in SHELL_COMMANDS, f"nobody knows the command {name}"


def check_flower_flags(name: str, arguments: list[str]) -> None:
    """Fail if one of Flower's commands lacks a flag."""
    shown = help_of(name, subcommand(name, arguments))
    for word in arguments:
        assert not word.startswith("--") or word in shown, f"{name} has no {word}"


def check_make_targets(targets: list[str]) -> None:
    """Fail if the Makefile lacks a target."""
    makefile = (ROOT / "Makefile").read_text()
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make has no {target}"


def check_extras(arguments: list[str]) -> None:
    """Fail if `pip install` names an extra that the package does not offer."""
    assert arguments[0] == "install"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    offered = project["optional-dependencies"].keys()
    for extras in re.findall(r"(?:fedcohort|\.)\[([\w,-]+)\]", " ".join(arguments)):
        assert set(extras.split(",")) <= offered, f"fedcohort has no extra {extras}"


def check_script(script: str, folder: Path) -> None:
    """Fail if a Python script does not exist where a reader would look for it."""
    places = [ROOT / "examples/flower-quickstart", folder, ROOT]
    exists = any((place / script).exists() for place in places)
    assert script == "-m" or exists, f"there is no {script}"


def subcommand(name: str, arguments: list[str]) -> tuple[str, ...]:
    """Return the words before the first argument: `run`, or `supernode register`."""
    if name != "flwr":
        return ()
    count = 2 if arguments[0] == "supernode" else 1
    return tuple(arguments[:count])


@cache
def help_of(name: str, words: tuple[str, ...]) -> str:
    """Return the help of one of Flower's commands."""
    (script,) = entry_points(group="console_scripts", name=name)
    before = sys.argv
    sys.argv = [name, *words, "--help"]
    out = io.StringIO()
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(out),
            contextlib.suppress(SystemExit),
        ):
            warnings.simplefilter("ignore")
            script.load()()
    finally:
        sys.argv = before
    return out.getvalue()


def parse_fedcohort(words: list[str]) -> None:
    """Parse one of our commands without running it."""
    group = get_command(cli.app)
    context = typer.Context(group)
    if words[0].startswith("--"):
        assert words[0] in ("--help", "--version", "--install-completion", "--show-completion")
        return

    command = group.get_command(context, words[0])  # type: ignore[attr-defined]
    assert command, f"fedcohort has no command {words[0]}"
    if "--help" not in words:
        command.make_context(words[0], words[1:])


def run_fedcohort(words: list[str]) -> None:
    """Run one of our commands in this process; it must succeed."""
    before = sys.argv
    sys.argv = ["fedcohort", *words]
    try:
        with pytest.raises(SystemExit) as end:
            cli.main()
    finally:
        sys.argv = before
    assert end.value.code == 0, f"fedcohort {shlex.join(words)} ended with {end.value.code}"
