"""The pages of the documentation as a reader plays them: files written, Python run, commands run or at least understood.

```python            runs, with the names of the blocks before it on the page
```toml title="x"    any block with a title is also written to a file of that name
```text title="Output"    is what the Python block before it printed
```bash              every command and flag must exist; those of fedcohort also run below a line <!-- run -->
<!-- not run: why -->     above a Python block: it is compiled only
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
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "DEVIATIONS.md",
    ROOT / "examples/flower-quickstart/README.md",
    ROOT / "results/README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(
    r"(?:<!-- (?P<mark>run|not run: [^>]+?) -->\n)?^```(?P<kind>\w*)(?P<info>[^\n]*)\n(?P<text>.*?)^```$",
    re.M | re.S,
)
TITLE = re.compile(r'title="([^"]+)"')
TOOLS = ("flower-superlink", "flower-supernode", "flwr")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    kind: str
    title: str
    mark: str
    text: str
    line: int

    @property
    def commands(self) -> list[list[str]]:
        """The commands of a shell block in words, without comments, redirections and background marks."""
        joined = self.text.replace("\\\n", " ")
        return [
            words
            for line in joined.splitlines()
            if (words := shlex.split(line.removesuffix("&"), comments=True))
        ]


@dataclass
class Reader:
    """Someone who types what a page says, in a folder of their own."""

    page: Path
    folder: Path
    names: dict[str, Any] = field(default_factory=dict)
    printed: str = ""

    def read(self) -> None:
        """Play all blocks in order."""
        for block in blocks(self.page):
            try:
                self.play(block)
            except BaseException as error:
                error.add_note(f"{self.page}, line {block.line}")
                raise

    def play(self, block: Block) -> None:
        """Write, run or check a block."""
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
            for words in block.commands:
                understand(words, self.page.parent)
                if block.mark == "run" and words[0] == "fedcohort":
                    run_fedcohort(words[1:])

    def run_python(self, block: Block) -> None:
        """Run a block with the names of those before it; lines in its tracebacks are those of the page."""
        code = compile("\n" * block.line + block.text, str(self.page), "exec")
        if block.mark.startswith("not run"):
            return
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, self.names)
        self.printed = out.getvalue()


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page, and see that none is left over."""
    text = page.read_text(encoding="utf-8")
    found = list(BLOCK.finditer(text))
    assert 2 * len(found) == len(re.findall(r"^\s*```", text, re.M)), (
        f"{page} has blocks that are indented or do not end"
    )
    for match in found:
        title = TITLE.search(match["info"])
        line = text[: match.start("text")].count("\n")
        yield Block(
            match["kind"], title[1] if title else "", match["mark"] or "", match["text"], line
        )


def understand(words: list[str], folder: Path) -> None:
    """Refuse a command that does not exist, or that has other flags."""
    name, *rest = words
    if name == "fedcohort":
        parse_fedcohort(rest)
    elif name in TOOLS:
        for flag in {word for word in rest if word.startswith("--")}:
            assert flag in help_of(name, subcommand(name, rest)), f"{name} has no {flag}"
    elif name == "make":
        for target in rest:
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M), (
                f"make has no {target}"
            )
    elif name in ("pip", ".venv/bin/pip"):
        offered = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
            "optional-dependencies"
        ]
        assert rest[0] == "install"
        for extra in re.findall(r"fedcohort\[([\w,-]+)\]", " ".join(rest)):
            assert set(extra.split(",")) <= offered.keys(), f"fedcohort has no extra {extra}"
    elif name == "python":
        scripts = [ROOT / "examples/flower-quickstart" / rest[0], folder / rest[0], ROOT / rest[0]]
        assert rest[0] == "-m" or any(script.exists() for script in scripts), (
            f"there is no {rest[0]}"
        )
    else:
        assert name in ("cd", "export", "git", "pytest"), f"nobody knows the command {name}"


def subcommand(name: str, rest: list[str]) -> tuple[str, ...]:
    """Return the words before the first argument: `run`, or `supernode register`."""
    if name != "flwr":
        return ()
    return tuple(rest[:2]) if rest[0] == "supernode" else tuple(rest[:1])


@cache
def help_of(name: str, words: tuple[str, ...]) -> str:
    """Return the help of one of Flower's commands."""
    (script,) = entry_points(group="console_scripts", name=name)
    before, sys.argv = sys.argv, [name, *words, "--help"]
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
    """Parse a command of ours without running it."""
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
    """Run a command of ours here; it must end well."""
    before, sys.argv = sys.argv, ["fedcohort", *words]
    try:
        with pytest.raises(SystemExit) as end:
            cli.main()
    finally:
        sys.argv = before
    assert end.value.code == 0, f"fedcohort {shlex.join(words)} ended with {end.value.code}"
