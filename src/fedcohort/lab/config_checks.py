"""What the settings of a comparison and of a simulation must be, each check written once."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from fedcohort.aggregation.registry import AGGREGATIONS
from fedcohort.aggregation.server import SERVER_OPTIMIZERS
from fedcohort.checks import MAX_COUNT, check_choice, check_int, check_positive, check_range, shown
from fedcohort.data import DATASETS, PARTITIONS
from fedcohort.data.scaling import SCALINGS
from fedcohort.lab.named_parts import is_npz, registered_names
from fedcohort.references import check_name
from fedcohort.selection.registry import SELECTORS
from fedcohort.selection.sampling import SAMPLERS
from fedcohort.world.options import parse_options
from fedcohort.world.registry import WORLDS

if TYPE_CHECKING:
    from fedcohort.lab.config import ComparisonConfig, Config, SimulationConfig

DEFAULT_WORLD = "bernoulli"
WORLDS_WITH_FILE = ("recorded", "trace")
WORLDS_WITHOUT_FILE = tuple(name for name in WORLDS if name not in WORLDS_WITH_FILE)
WORLDS_WITHOUT_CLASSES = ("labels", "devices", *WORLDS_WITH_FILE)
TYPES = {bool: "true or false", int: "a whole number", float: "a number"}
TYPES |= {str: "text", tuple: "a list", type(None): "nothing"}
LAST_SEED = 2**62  # a seed must fit TOML's integers, with room to count up

Check = Callable[[str, Any], Any]  # refuses a value, by the name of its setting


def _within(low: float, high: float) -> Check:
    return partial(check_range, low=low, high=high)


def _one_of(options: Any) -> Check:
    def check(name: str, value: Any) -> None:
        check_choice(name.removesuffix("s"), value, options)

    return check


def _named(kind: str, registry: Collection[str]) -> Check:
    def check(name: str, value: Any) -> None:
        check_name(kind, value, registry)

    return check


def _check_eta(name: str, value: Any) -> None:
    if value != "auto":
        check_positive(name, value)


def _check_max_norm(name: str, value: Any) -> None:
    if value != math.inf:
        check_positive(name, value)


_check_count: Check = partial(check_int, low=1, high=MAX_COUNT)

SHARED_CHECKS: dict[str, Check] = {
    "rounds": _check_count,
    "seeds": _check_count,
    "first_seed": partial(check_int, low=0),
    "sampler": _one_of(SAMPLERS),
    "selectors": _named("selector", SELECTORS),
    "eta": _check_eta,
    "rates": _within(0.0, 1.0),
    "world": _named("world", WORLDS),
}
COMPARISON_CHECKS: dict[str, Check] = {
    "partitions": _named("partition", PARTITIONS),
    "aggregations": _named("aggregation", AGGREGATIONS),
    "scaling": _one_of(SCALINGS),
    "first_seed": partial(check_int, low=0, high=LAST_SEED),
    "batch_size": _check_count,
    "epochs": _check_count,
    "evaluate_every": _check_count,
    "checkpoint_every": _check_count,
    "samples_per_client": _check_count,
    "slots": _check_count,
    "official_every": partial(check_int, low=0),
    "losses_every": partial(check_int, low=0),
    "max_norm": _check_max_norm,
    "learning_rate": check_positive,
    "seconds_per_epoch": check_positive,
    "server_rate": check_positive,
    "server_optimizer": _one_of(SERVER_OPTIMIZERS),
    "deadline": check_positive,
    "targets": _within(0.0, 1.0),
    "mus": _within(0.0, 1e6),
    "momentum": _within(0.0, 1.0),
    "server_momentum": _within(0.0, 1.0),
    "test_fraction": _within(0.0, 0.9),
    "jitter": _within(0.0, 10.0),
}
ONLY_WITH_TRAINING = {  # what a scheme may need that a simulation does not have
    "needs_losses": "losses",
    "probes_losses": "losses",
    "needs_norms": "lengths of updates",
    "needs_data_sizes": "data sizes",
    "needs_deadline": "deadline",
}
REPEATABLE = ("rates", "epochs")  # a value may stand there twice
NUMBERS = (  # settings that need not be whole; whole ones are kept as floats too
    "mus",
    "rates",
    "targets",
    "test_fraction",
    "seconds_per_epoch",
    "jitter",
    "deadline",
    "learning_rate",
    "momentum",
    "server_rate",
    "server_momentum",
    "max_norm",
    "eta",
)
SHOWN_ROUNDED = ("mus", "targets")  # two values with one rounded name would share a column


def check_comparison(config: "ComparisonConfig") -> None:
    """Check all settings of a comparison.

    Raises:
        ValueError: If a setting has the wrong type or lies outside its bounds.
    """
    _check_types(config)
    _check_learning(config)
    _check_lists(config, ("partitions", "aggregations", "mus", "epochs", "targets"))
    _check_shared(config)
    _check_fields(config, COMPARISON_CHECKS)
    if not is_npz(config.dataset):
        check_name("dataset", config.dataset, DATASETS)
    if config.candidates is not None:
        check_int("candidates", config.candidates, config.cohort, config.clients)
    if config.precision != "float32" and config.device == "cpu":
        raise ValueError(f"precision must be float32 on a CPU, got {config.precision!r}")
    if config.server_optimizer != "sgd" and config.server_momentum:
        raise ValueError(
            f"server_momentum must be 0 for the server_optimizer {config.server_optimizer!r}, "
            f"which has its own, got {config.server_momentum}"
        )


def check_simulation(config: "SimulationConfig") -> None:
    """Check all settings of a simulation.

    Raises:
        ValueError: If a setting lies outside its bounds.
    """
    _check_shared(config)
    _check_text("world_file", config.world_file)
    for name in config.selectors:
        if name in SELECTORS:  # others are known once they are imported, to be played
            check_needs_no_training(name, SELECTORS[name].selector)


def check_needs_no_training(name: str, selector: Any) -> None:
    """Refuse a selector that cannot be played where nothing is trained.

    Args:
        name: Its name, for the message.
        selector: The selector or its class.

    Raises:
        ValueError: If it needs something that only training gives.
    """
    for capability, what in ONLY_WITH_TRAINING.items():
        if getattr(selector, capability, False):
            raise ValueError(
                f"selector must need no {what} where nothing is trained, "
                f"got {name!r}; `compare` trains"
            )


def _check_fields(config: "Config", checks: Mapping[str, Check]) -> None:
    """Apply each check to its setting, or to every value of a list; None is not checked."""
    for name, check in checks.items():
        value = getattr(config, name)
        if value is None:
            continue
        values = value if isinstance(value, tuple) else (value,)
        for part in values:
            check(name, part)


def _check_lists(config: "Config", names: Sequence[str]) -> None:
    """Refuse lists that are empty or name something twice."""
    for name in names:
        values = getattr(config, name)
        words = {_word(name, value) for value in values}
        has_duplicates = len(words) < len(values) and name not in REPEATABLE
        if not values or has_duplicates:
            once = "" if name in REPEATABLE else ", each once"
            raise ValueError(
                f"{name} must be a list of at least one{once}, got {shown(list(values))}"
            )


def _word(name: str, value: Any) -> Any:
    if name in SHOWN_ROUNDED and isinstance(value, float):
        return f"{value:g}"
    return value


def _check_shared(config: "Config") -> None:
    """Check the settings that both configurations have."""
    _check_lists(config, ("selectors", "rates"))
    has_classes = config.world_file is None and config.world not in WORLDS_WITHOUT_CLASSES
    check_int("clients", config.clients, 1, MAX_COUNT)
    if has_classes and config.clients < len(config.rates):
        raise ValueError(
            f"clients must be at least {len(config.rates)}, one for each rate, got {config.clients}"
        )
    check_int("cohort", config.cohort, 1, config.clients)
    _check_fields(config, SHARED_CHECKS)
    for option in config.world_options:
        _check_option(option)
    parse_options(config.world_options)
    if config.world in WORLDS_WITHOUT_FILE and config.world_file is not None:
        raise ValueError(
            f"world_file must not be given for the world {config.world!r}, got {config.world_file}"
        )


def _check_option(option: Any) -> None:
    """Refuse an option of the world that is no text."""
    if not isinstance(option, str):
        raise ValueError(f"world_options must be name=number each, got {shown(option)}")
    _check_text("world_options", option)


def _check_learning(config: "ComparisonConfig") -> None:
    """Refuse names that the learning part does not know.

    Without PyTorch nothing can be trained, and settings that are read were checked when written.
    """
    models = registered_names("model")
    if models is None:
        return
    # Imported here, not at the top: `--help` must not load PyTorch.
    from fedcohort.learning.options import MODES, PRECISIONS
    from fedcohort.learning.update_memory import MEMORY_TYPES

    check_name("model", config.model, models)
    check_choice("precision", config.precision, PRECISIONS)
    check_choice("memory_precision", config.memory_precision, MEMORY_TYPES)
    check_choice("mode", config.mode, MODES)


def _check_types(config: "ComparisonConfig") -> None:
    """Refuse values of another type than the default's; whole numbers count as numbers."""
    for setting in fields(config):
        value = getattr(config, setting.name)
        allowed = _allowed_types(setting.name, setting.default)
        is_misplaced_bool = isinstance(value, bool) and bool not in allowed
        if is_misplaced_bool or not isinstance(value, allowed):
            words = " or ".join(TYPES[kind] for kind in allowed)
            raise ValueError(f"{setting.name} must be {words}, got {shown(value)}")
        _check_text(setting.name, value)


def _check_text(name: str, value: Any) -> None:
    """Refuse a name that no settings file can hold: not UTF-8, or with a zero byte."""
    if not isinstance(value, str):
        return
    is_text = value == value.encode(errors="replace").decode()
    if not is_text or "\0" in value:
        raise ValueError(f"{name} must be text in UTF-8 without zero bytes, got {shown(value)}")


def as_floats(value: Any) -> Any:
    """Return whole numbers as floats, in tuples too, and everything else as it is."""
    if isinstance(value, tuple):
        return tuple(as_floats(part) for part in value)
    return float(value) if isinstance(value, int) else value


def _allowed_types(name: str, default: Any) -> tuple[type, ...]:
    if name == "world_file":
        return (str, type(None))
    if name == "eta":
        return (int, float, str)
    if default is None:
        return (int, float, type(None))
    if isinstance(default, float):
        return (int, float)
    return (type(default),)
