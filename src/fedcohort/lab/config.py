"""The settings of a comparison and of a simulation: all that decides their results.

Both configurations use the same names for the same things. On disk a simulation keeps two older
names, see `config_storage.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from fedcohort.arrays import Ints
from fedcohort.checks import check_choice
from fedcohort.lab.config_checks import (
    DEFAULT_WORLD,
    NUMBERS,
    WORLDS_WITHOUT_CLASSES,
    as_floats,
    check_comparison,
    check_simulation,
)
from fedcohort.lab.config_storage import SIMULATION_KEYS, plain_settings, sort_world_options
from fedcohort.lab.named_parts import expand_names
from fedcohort.lab.time_checks import check_times
from fedcohort.references import is_reference
from fedcohort.selection.registry import PAPER_SELECTORS
from fedcohort.world.classes import PAPER_RATES, class_of
from fedcohort.world.options import parse_options
from fedcohort.world.registry import Conditions, World, make_world


def _setting(default: Any, meaning: str) -> Any:
    """Return a field whose meaning `fedcohort compare --help-all` shows."""
    return field(default=default, metadata={"help": meaning})


@dataclass(frozen=True)
class ComparisonConfig:
    """All that decides the results of a comparison.

    Every field says in its metadata what it means; `fedcohort compare --help-all` lists them. The
    defaults take about a minute on two cores.

    Raises:
        ValueError: If a setting has the wrong type or lies outside its bounds.

    Examples:
        >>> from fedcohort.lab.config import ComparisonConfig
        >>> config = ComparisonConfig(selectors=("e3cs-0.5", "random"), rounds=20)
        >>> config.clients, config.cohort, config.rounds
        (36, 7, 20)
    """

    dataset: str = _setting(
        "digits", "digits, cifar10, emnist-letters, mnist, others; or a .npz file"
    )
    model: str = _setting("mlp", "mlp, small-cnn, emnist-cnn, cifar-cnn; others: fedcohort list")
    selectors: tuple[str, ...] = _setting(PAPER_SELECTORS, "selectors to compare")
    partitions: tuple[str, ...] = _setting(
        ("iid", "primary-label"), "who owns what; also dirichlet, shards, by-client"
    )
    aggregations: tuple[str, ...] = _setting(("paper", "normalised"), "averaging rules")
    mus: tuple[float, ...] = _setting((0.0,), "FedProx's coefficients; 0 is FedAvg")
    seeds: int = _setting(3, "runs of each kind, in own worlds")
    first_seed: int = _setting(0, "seed of the first run; the others count up")
    clients: int = _setting(36, "number of clients, K")
    cohort: int = _setting(7, "clients asked per round, k")
    rounds: int = _setting(120, "number of rounds, T")
    samples_per_client: int | None = _setting(None, "samples of each client; none: all, evenly")
    refill: bool = _setting(
        False, "primary-label: deal a label again that has run out, so that clients share samples"
    )
    scaling: str = _setting(
        "symmetric", "scale of images; also unit ([0, 1]), standard (mean 0, sd 1)"
    )
    test_fraction: float = _setting(0.1, "part of each client's data reserved for testing")
    rates: tuple[float, ...] = _setting(PAPER_RATES, "success rate of each class of clients")
    world: str = _setting(
        DEFAULT_WORLD, "who would answer; also markov, groups; others: fedcohort list"
    )
    world_file: str | None = _setting(None, "what was recorded, for --world recorded and trace")
    world_options: tuple[str, ...] = _setting(
        (), "NAME=VALUE, repeatable: a parameter of the world"
    )
    knows_offline: bool = _setting(
        False, "the server knows who is offline before it asks, in worlds that have such clients"
    )
    epochs: tuple[int, ...] = _setting((1, 2, 3, 4), "local epochs, drawn once per client")
    seconds_per_epoch: float = _setting(1.0, "virtual time a client takes")
    jitter: float = _setting(0.0, "spread of that time, log-normal; 0 in worlds of seconds")
    deadline: float | None = _setting(None, "in seconds; none: the time of the most epochs")
    learning_rate: float = _setting(0.05, "of the clients' SGD")
    momentum: float = _setting(0.9, "of the clients' SGD")
    batch_size: int = _setting(10, "of the clients' SGD")
    server_rate: float = _setting(1.0, "of the server's step")
    server_momentum: float = _setting(0.0, "of the server's step")
    server_optimizer: str = _setting("sgd", "of the server's step; also adam, yogi")
    max_norm: float = _setting(float("inf"), "longest change a client may return")
    eta: float | str = _setting(0.5, "learning rate of E3CS, or auto")
    sampler: str = _setting("systematic", "also pivotal, successive (the paper's)")
    candidates: int | None = _setting(None, "candidates of pow-d; none: 2.5 k")
    targets: tuple[float, ...] = _setting((0.6, 0.8), "accuracies to time")
    evaluate_every: int = _setting(1, "rounds between tests")
    official_every: int = _setting(0, "rounds between tests on the data set's test set; 0: none")
    losses_every: int = _setting(0, "rounds between records of all clients' losses; 0: none")
    checkpoint_every: int = _setting(20, "rounds between checkpoints: the most a crash can cost")
    device: str = _setting("cpu", "cpu, cuda, or auto")
    precision: str = _setting("float32", "on cuda also tf32 or bf16, weights in float32")
    compiled: bool = _setting(False, "torch.compile on cuda")
    memory_precision: str = _setting("float32", "of updates that rules remember; also bf16")
    mode: str = _setting("auto", "together, one-by-one, or the faster of them")
    slots: int | None = _setting(None, "jobs side by side; none: by memory")

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, list):
                object.__setattr__(self, name, tuple(value))
        expand_names(self)
        check_comparison(self)
        # A whole number would become an integer tensor, or overflow one.
        for name in NUMBERS:
            object.__setattr__(self, name, as_floats(getattr(self, name)))
        sort_world_options(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "ComparisonConfig":
        """Return a configuration from plain values, as a TOML file gives them.

        Args:
            values: Settings by name; those that are missing have their defaults.

        Raises:
            ValueError: If a name is unknown, or a value is not allowed.
        """
        names = sorted(setting.name for setting in fields(ComparisonConfig))
        for name in values:
            check_choice("setting", name, names)
        try:
            return ComparisonConfig(**values)
        except TypeError as error:
            message = f"settings must be of the types of the defaults, got: {error}"
            raise ValueError(message) from None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, fit for TOML; see `config_storage.py` for those left out."""
        return plain_settings(self)

    @property
    def seconds_until_deadline(self) -> float:
        """The deadline; unless one is given, the time that the most epochs take."""
        if self.deadline is not None:
            return self.deadline
        return self.seconds_per_epoch * max(self.epochs)


@dataclass(frozen=True)
class SimulationConfig:
    """All that decides the results of a simulation, which trains nothing.

    The defaults are the paper's numbers.

    Attributes:
        selectors: Selectors to simulate.
        clients: Number of clients, K.
        cohort: Clients asked per round, k.
        rounds: Number of rounds, T.
        seeds: Number of runs, S, each with its own world.
        first_seed: Seed of the first run; the others count up.
        rates: Success rate of each class of clients.
        eta: Learning rate of E3CS, or "auto" for the theorem's.
        sampler: How E3CS draws a cohort.
        world: Which clients would answer, a key of `WORLDS`.
        world_file: File of recorded rounds or availability, for the worlds "recorded" and "trace".
        world_options: Parameters of the world, as "name=value" each.
        knows_offline: Whether the server knows who is offline before it asks.

    Raises:
        ValueError: If a setting lies outside its bounds.

    Examples:
        >>> from fedcohort.lab.config import SimulationConfig
        >>> SimulationConfig(("random",), clients=8, cohort=3, rounds=12, seeds=2).cohort
        3
    """

    selectors: tuple[str, ...] = (
        "e3cs-0",
        "e3cs-0.5",
        "e3cs-0.8",
        "e3cs-inc",
        "e3cs-robust",
        "fedcs",
        "random",
    )
    clients: int = 100
    cohort: int = 20
    rounds: int = 2500
    seeds: int = 20
    first_seed: int = 0
    rates: tuple[float, ...] = PAPER_RATES
    eta: float | str = 0.5
    sampler: str = "systematic"
    world: str = DEFAULT_WORLD
    world_file: str | None = None
    world_options: tuple[str, ...] = ()
    knows_offline: bool = False

    def __post_init__(self) -> None:
        expand_names(self)
        check_simulation(self)
        sort_world_options(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "SimulationConfig":
        """Return the configuration that `as_dict` described.

        Raises:
            TypeError: If a name is unknown.
            ValueError: If a value is not allowed.
        """
        names = {key: name for name, key in SIMULATION_KEYS.items()}
        settings: dict[str, Any] = {}
        for key, value in values.items():
            settings[names.get(key, key)] = tuple(value) if isinstance(value, list) else value
        return SimulationConfig(**settings)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values by their names on disk, fit for JSON."""
        settings = plain_settings(self)
        return {SIMULATION_KEYS.get(name, name): value for name, value in settings.items()}

    @property
    def seed_list(self) -> list[int]:
        """The seeds that are played in lock-step."""
        return list(range(self.first_seed, self.first_seed + self.seeds))


Config = ComparisonConfig | SimulationConfig


def has_classes(config: Config) -> bool:
    """Return whether clients have classes with a success rate each.

    Recorded clients have none, and those in a world of one's own have none that is known.
    """
    has_rates = config.world not in WORLDS_WITHOUT_CLASSES and not is_reference(config.world)
    return config.world_file is None and has_rates


def client_classes(config: Config) -> Ints:
    """Return the class of every client [K]; all are of one class in a world without classes."""
    return class_of(config.clients, len(config.rates) if has_classes(config) else 1)


def open_world(config: Config, seeds: Sequence[int], **known: Any) -> World:
    """Return the world of a configuration: who would answer in which round.

    Args:
        config: The configuration.
        seeds: One seed per run.
        **known: Fields of `Conditions` that no configuration knows, such as the label counts.

    Returns:
        The world, with rows [len(seeds), K]. Drawing a row that it lacks raises ValueError.

    Raises:
        ValueError: If a recorded world has fewer rounds than asked for, or other clients, or if
            a setting of times changes nothing because the world has seconds of its own.
        MissingData: If the world must know more than the configuration and `known` say.
    """
    deadline = None
    if isinstance(config, ComparisonConfig):
        deadline = config.seconds_until_deadline
    conditions = Conditions(
        num_clients=config.clients,
        seeds=seeds,
        rates=config.rates,
        file=config.world_file,
        options=parse_options(config.world_options),
        knows_offline=config.knows_offline,
        deadline=deadline,
        rounds=config.rounds,
        **known,
    )
    world = make_world(config.world, conditions)
    world.check_rounds(config.rounds)
    if world.has_seconds and isinstance(config, ComparisonConfig):
        check_times(config)
    return world.lasting(config.world, config.rounds)
