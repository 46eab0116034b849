"""The one line that says what was wrong, for errors that a user can do something about."""

from fedcohort.references import describe_own_error

EXTRAS = {  # the modules that each extra installs
    "learning": ("torch", "sklearn", "scipy", "safetensors", "pyarrow"),
    "flower": ("flwr",),
}
OUT_OF_MEMORY = ("allocate memory", "out of memory")  # PyTorch's words for a host and for a GPU


def describe_mistake(error: BaseException) -> str | None:
    """Return one line about an error, None if it is no mistake of a user but one of ours.

    Args:
        error: The error, such as a setting out of bounds, a missing extra, or too little memory.
    """
    own = describe_own_error(error) if isinstance(error, Exception) else None
    if own is not None:
        return own
    if isinstance(error, ModuleNotFoundError):
        extra = extra_with(error.name)
        if extra is not None:
            return f"this command needs {error.name}: pip install 'fedcohort[{extra}]'"
        return None
    if isinstance(error, MemoryError):
        return str(error) or "not enough memory"
    if isinstance(error, RuntimeError):
        return _describe_lack_of_memory(error)
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename} cannot be used: {error.strerror.lower()}"
    if isinstance(error, ValueError | OSError):
        return str(error)
    return None


def extra_with(module: str | None) -> str | None:
    """Return the extra that installs a module, None if no extra does."""
    for extra, modules in EXTRAS.items():
        if module in modules:
            return extra
    return None


def _describe_lack_of_memory(error: RuntimeError) -> str | None:
    words = str(error)
    if not any(part in words for part in OUT_OF_MEMORY):
        return None
    return f"not enough memory: {words.splitlines()[0]}"
