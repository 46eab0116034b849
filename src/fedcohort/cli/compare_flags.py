"""The flags of `fedcohort compare`: one for each setting, and those of the command itself."""

import inspect
from collections.abc import Callable
from dataclasses import Field, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from fedcohort.cli.console import say
from fedcohort.cli.parse import split_list
from fedcohort.cli.sharing import DEVICES, RAY, SHARD
from fedcohort.lab.config import ComparisonConfig

COMMON = (
    "dataset",
    "model",
    "selectors",
    "partitions",
    "aggregations",
    "seeds",
    "clients",
    "cohort",
    "rounds",
    "world",
    "targets",
    "device",
)
REPEATABLE = ("world_options",)  # flags that may stand there several times, in the singular too


def parse_setting(name: str, text: str | bool | list[str]) -> Any:
    """Return a flag's value in the type of its setting: a list, a number, a word or None."""
    if isinstance(text, bool):
        return text
    if isinstance(text, list):  # a flag that may be repeated
        text = ",".join(text)
    default = getattr(ComparisonConfig(), name)
    if isinstance(default, tuple):
        return tuple(_parse_value(part) for part in split_list(name, text))
    is_word = isinstance(default, str) and name != "eta"
    if is_word or name == "world_file":
        return text
    return _parse_value(text)


def _parse_value(text: str) -> Any:
    """Return a whole number, a number, None, or the text itself.

    Python alone reads `1_0` as 10, and digits of other scripts as digits: here they are words.
    """
    is_plain = text.isascii() and "_" not in text
    for number in (int, float) if is_plain else ():
        try:
            return number(text)
        except ValueError:
            continue
    return None if text.lower() == "none" else text


def _show_all_settings(wanted: bool) -> None:
    """Print every setting with its meaning and default, and end."""
    if wanted:
        for setting in fields(ComparisonConfig):
            name = setting.name
            if name in REPEATABLE:
                name = name.removesuffix("s")
            words = _describe(setting)
            if isinstance(setting.default, tuple) and name == setting.name:
                words += ", comma-separated"
            say(f"--{name.replace('_', '-'):<20} {words}")
        raise typer.Exit


def _describe(setting: "Field[Any]") -> str:
    """Return a setting's meaning and default."""
    default = setting.default
    words = str(default).lower()
    if isinstance(default, tuple):
        words = ", ".join(map(str, default)) or "none"
    return f"{setting.metadata['help']} (default {words})"


OWN_FLAGS: dict[str, tuple[Any, Any, Any]] = {  # type, default, option
    "config": (
        Path | None,
        None,
        typer.Option(help="TOML file with settings; flags override it."),
    ),
    "out": (Path, Path("runs/compare"), typer.Option(help="Folder of the run.")),
    "data": (
        Path | None,
        None,
        typer.Option(help="Folder with data sets; also $FEDCOHORT_DATA."),
    ),
    "resume": (bool, False, typer.Option("--resume", help="Go on with the run there, if any.")),
    "from_previous": (
        bool,
        False,
        typer.Option(
            "--from-previous",
            help="With --resume: if the last checkpoint is damaged, use the one before.",
        ),
    ),
    "overwrite": (
        bool,
        False,
        typer.Option("--overwrite", help="Replace the run there; other files stay."),
    ),
    "log": (
        str | None,
        None,
        typer.Option(help="Also log to tensorboard, mlflow or wandb."),
    ),
    "as_json": (
        bool,
        False,
        typer.Option("--json", help="Print the table as JSON and nothing else."),
    ),
    "devices": (str | None, None, DEVICES),
    "shard": (str | None, None, SHARD),
    "ray": (str | None, None, RAY),
    "help_all": (
        bool,
        False,
        typer.Option(
            "--help-all",
            callback=_show_all_settings,
            is_eager=True,
            help="Show all settings, and end.",
        ),
    ),
}


def add_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one flag per setting, with the setting's meaning and default as help."""
    flags = dict(OWN_FLAGS)
    for setting in fields(ComparisonConfig):
        is_switch = isinstance(setting.default, bool)
        names = []
        if setting.name in REPEATABLE:
            flag = f"--{setting.name.replace('_', '-')}"
            names = [flag, flag.removesuffix("s")]
        option = typer.Option(
            *names,
            help=_describe(setting),
            show_default=False,
            metavar=None if is_switch else "VALUE",
            hidden=setting.name not in COMMON,
        )
        kind: Any = bool | None if is_switch else str | None
        if names:
            kind = list[str] | None
        flags[setting.name] = (kind, None, option)

    parameters = []
    for name, (kind, default, option) in flags.items():
        parameter = inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[kind, option],
        )
        parameters.append(parameter)

    def compare(**given: Any) -> None:
        command(**given)

    compare.__doc__ = command.__doc__
    compare.__annotations__ = {one.name: one.annotation for one in parameters}
    compare.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return compare
