"""What a name stands for: the registered entry, or the object that a reference names.

A user's mistake becomes a ValueError of one line, with the line of the user's file where it has
one.
"""

import hashlib
import importlib
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any, TypeVar

from fedcohort.checks import one_line, shown
from fedcohort.references.names import check_name, expand_name, find_entry_point, is_file

T = TypeVar("T")

# Frames of a traceback in these files say nothing about a user's own.
NOT_OWN = (str(Path(__file__).parents[1]), importlib.__file__, "<frozen ")

_files: dict[tuple[Path, str], ModuleType] = {}  # by path and digest: a changed file loads again
_own_files: set[str] = set()  # of everything that was imported by reference


def resolve(kind: str, name: str, registry: Mapping[str, Any]) -> Any:
    """Return what a name stands for; what is not registered is imported.

    Args:
        kind: A key of `GROUPS`.
        name: A registered name, a name that an installed package registers, or a reference.
        registry: What fedcohort itself registers, by name.

    Returns:
        The registered entry, or the user's object, whose type the caller must check.

    Raises:
        ValueError: If there is no such name, file or module, or importing it fails.
    """
    check_name(kind, name, registry)
    if name in registry:
        return registry[name]
    reference = expand_name(kind, name, registry)
    about = f"{kind} {reference!r}"
    place, _, variable = reference.rpartition(":")
    if is_file(reference):
        return _find_in(_load_file(about, Path(place)), place, about, variable)

    entry = find_entry_point(kind, reference)
    if entry is None:
        return _find_in(_import_module(about, place), place, about, variable)
    about = f"{about} of the package {place}"
    found = _import_module(about, entry.module)
    for part in entry.attr.split("."):
        found = _find_in(found, entry.module, about, part)
    return found


def source_digest(kind: str, reference: str) -> str:
    """Return the SHA-256 of the file that a reference names, or of its module's file.

    The file is not run. To find a module, Python imports the packages that hold it.

    Args:
        kind: A key of `GROUPS`.
        reference: The reference.

    Raises:
        ValueError: If there is no such file.
    """
    about = f"{kind} {reference!r}"
    place = reference.rpartition(":")[0]
    path = Path(place)
    if not is_file(reference):
        entry = find_entry_point(kind, reference)
        path = _module_path(about, place if entry is None else entry.module)
    return hashlib.sha256(_read_file(about, path)).hexdigest()


def call_own(about: str, make: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a user's function returns; what it raises becomes one line that says where.

    Args:
        about: What the function makes, for the message: "world 'mine.py:night_shift'".
        make: The function.
        *arguments: Its arguments.

    Raises:
        ValueError: If the function fails. Kinds of errors that fedcohort defines stay as they are.
    """
    try:
        return make(*arguments)
    except (Exception, SystemExit) as error:
        if type(error).__module__.startswith("fedcohort."):
            raise  # a kind of its own, such as MissingData, means something to the caller
        raise ValueError(f"{about} must be made without an error, got {_describe(error)}") from None


def describe_own_error(error: BaseException) -> str | None:
    """Return what an error in a part of one's own says, and where; None for any other error.

    A part that lacks a method, or has it with other arguments, fails in our code and not in its
    own. It is known by the object that our code calls.

    Args:
        error: An error that ended a run.
    """
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    files = {frame.f_code.co_filename for frame in frames}
    if files & _own_files:
        return _describe(error)
    if not frames or not isinstance(error, TypeError | NotImplementedError):
        return None
    for value in frames[-1].f_locals.values():
        file = _own_file(type(value))
        if file is not None:
            return f"{type(value).__name__} of {file} cannot be used: {one_line(error)}"
    return None


def make_own(about: str, make: Any, kind: type[T], *arguments: Any) -> T:
    """Return what a user's function makes, if it is of the right kind.

    Args:
        about: What the function makes, for the message.
        make: What the user's name stands for; it must be a function.
        kind: The type that it must return.
        *arguments: Its arguments.

    Raises:
        ValueError: If it is no function, fails, or returns something else.
    """
    if not callable(make):
        raise ValueError(f"{about} must be a function or a class, got {shown(make)}")
    made = call_own(about, make, *arguments)
    if not isinstance(made, kind):
        raise ValueError(f"{about} must return a {kind.__name__}, got {shown(made)}")
    return made


def _own_file(kind: type) -> str | None:
    """Return the source of one's own that defines a class, None if another one does."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file if file in _own_files else None


def _read_file(about: str, path: Path) -> bytes:
    try:
        if not path.is_file():  # which raises an error if the name is too long
            raise ValueError(f"{about} must be in a file that is there, got no file {path}")
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{about} must be in a file that can be read, got: {error}") from None


def _load_file(about: str, path: Path) -> ModuleType:
    """Return a file as a module with a name of its own; `sys.path` stays as it is."""
    content = _read_file(about, path)
    key = (path.resolve(), hashlib.sha256(content).hexdigest())
    if key in _files:
        return _files[key]

    version = hashlib.sha256(repr(key).encode()).hexdigest()[:12]
    module = ModuleType(f"fedcohort_own_{path.stem}_{version}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where dataclasses and pickle look for it
    _own_files.add(str(path))
    try:
        exec(compile(content, str(path), "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        raise ValueError(_cannot_import(about, error)) from None
    _files[key] = module
    return module


def _import_module(about: str, name: str) -> ModuleType:
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise ValueError(_cannot_import(about, error, name)) from None
    file = getattr(module, "__file__", None)  # which modules in C lack
    if file and not file.startswith(NOT_OWN):
        _own_files.add(file)
    return module


def _module_path(about: str, name: str) -> Path:
    try:
        spec = find_spec(name)
    except (Exception, SystemExit) as error:
        raise ValueError(_cannot_import(about, error, name)) from None
    if spec is None:
        raise ValueError(_no_module(about, name))
    if not spec.has_location or spec.origin is None:
        raise ValueError(f"{about} must be in a module that is a file, got {spec.origin}")
    return Path(spec.origin)


def _cannot_import(about: str, error: BaseException, name: str = "") -> str:
    """Say why a module cannot be imported: it is not there, or it raises an error."""
    if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
        return _no_module(about, name)
    return f"{about} must be in a module that can be imported, got {_describe(error)}"


def _no_module(about: str, name: str) -> str:
    hint = ""
    if Path(f"{name}.py").is_file():
        hint = f"; did you mean {name}.py?"
    return f"{about} must be in a module that is installed, got no {name!r}{hint}"


def _find_in(module: Any, place: str, about: str, variable: str) -> Any:
    try:
        if hasattr(module, variable):
            return getattr(module, variable)
    except (Exception, SystemExit) as error:  # of a module's own __getattr__
        raise ValueError(f"{about} must be a name in {place}, got {_describe(error)}") from None
    names = [name for name in vars(module) if not name.startswith("_")]
    nearest = get_close_matches(variable, names, n=3, cutoff=0.5)
    hint = ""
    if nearest:
        hint = f"; did you mean {' or '.join(map(repr, nearest))}?"
    raise ValueError(f"{about} must be a name in {place}, got no {variable!r} there{hint}")


def _describe(error: BaseException) -> str:
    """Return the type and the message of an error, and the line of the user's file."""
    try:
        message = " ".join(str(error).split())
    except Exception:  # of a class of the user's own
        message = ""
    where = ""
    if isinstance(error, SyntaxError):
        message = error.msg
        where = f" in line {error.lineno} of {error.filename}"
    else:
        frames = []
        for frame, line in walk_tb(error.__traceback__):
            file = frame.f_code.co_filename
            if not file.startswith(NOT_OWN):
                frames.append((file, line))
        # Its last line in the user's file led to the error, perhaps in a library.
        own = [(file, line) for file, line in frames if file in _own_files] or frames[:1]
        if own:
            file, line = own[-1]
            where = f" in line {line} of {file}"
    words = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return words + where
