"""What a comparison is: its settings, its runs in the order of the batch axis, and its results in rows."""

from dataclasses import asdict, dataclass, field, fields
from itertools import product
from typing import Any

import numpy as np

from fedcohort.aggregation.registry import AGGREGATIONS
from fedcohort.arrays import Floats
from fedcohort.checks import MAX_COUNT, check_choice, check_int, check_positive, check_range
from fedcohort.data import DATASETS, PARTITIONS
from fedcohort.data.scaling import SCALINGS
from fedcohort.lab.folder import Arrays
from fedcohort.metrics import first_at, jain
from fedcohort.selection.registry import PAPER_SELECTORS, SELECTORS
from fedcohort.selection.sampling import SAMPLERS
from fedcohort.statistics import sd
from fedcohort.world.classes import PAPER_RATES


def _with(default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"help": meaning})


@dataclass(frozen=True)
class ComparisonConfig:
    """All that decides the results; the defaults take about a minute on two cores."""

    dataset: str = _with(
        "digits", "digits, cifar10, emnist-letters, mnist, fashion-mnist, or a .npz file"
    )
    model: str = _with("mlp", "mlp, small-cnn, emnist-cnn, cifar-cnn; others: fedcohort list")
    selectors: tuple[str, ...] = _with(PAPER_SELECTORS, "schemes to compare")
    partitions: tuple[str, ...] = _with(
        ("iid", "primary-label"), "who owns what: also dirichlet, shards, by-client"
    )
    aggregations: tuple[str, ...] = _with(("paper", "normalised"), "how updates are averaged")
    mus: tuple[float, ...] = _with((0.0,), "FedProx's coefficients; 0 is FedAvg")
    seeds: int = _with(3, "runs of each kind, each with its own world")
    first_seed: int = _with(0, "seed of the first; the others count up")
    clients: int = _with(36, "number of clients, K")
    cohort: int = _with(7, "clients asked per round, k")
    rounds: int = _with(120, "number of rounds, T")
    samples_per_client: int | None = _with(None, "none: all data, divided evenly")
    refill: bool = _with(
        False, "primary-label: deal a label again that has run out, so that clients share samples"
    )
    scaling: str = _with("symmetric", "of images: also unit ([0, 1]), standard (mean 0, sd 1)")
    test_fraction: float = _with(0.1, "part of each client's data reserved for testing")
    rates: tuple[float, ...] = _with(PAPER_RATES, "success rate of each class of clients")
    epochs: tuple[int, ...] = _with((1, 2, 3, 4), "local epochs, drawn once per client")
    seconds_per_epoch: float = _with(1.0, "virtual time a client takes")
    jitter: float = _with(0.0, "spread of that time, log-normal")
    deadline: float | None = _with(None, "in seconds; none: what the most epochs take")
    learning_rate: float = _with(0.05, "of the clients' SGD")
    momentum: float = _with(0.9, "of the clients' SGD")
    batch_size: int = _with(10, "of the clients' SGD")
    server_rate: float = _with(1.0, "of the server's step")
    server_momentum: float = _with(0.0, "of the server's step")
    max_norm: float = _with(float("inf"), "longest change a client may return")
    eta: float | str = _with(0.5, "learning rate of E3CS, or auto")
    sampler: str = _with("systematic", "also pivotal, successive (the paper's)")
    candidates: int | None = _with(None, "of pow-d; none: 2.5 k")
    targets: tuple[float, ...] = _with((0.6, 0.8), "accuracies to time")
    evaluate_every: int = _with(1, "rounds")
    official_every: int = _with(0, "rounds between tests on the data set's own test set; 0: none")
    checkpoint_every: int = _with(20, "rounds: what a crash can cost")
    device: str = _with("cpu", "cpu, cuda, or auto")
    precision: str = _with("float32", "on cuda also tf32 or bf16, weights in float32")
    compiled: bool = _with(False, "torch.compile on cuda")
    mode: str = _with("auto", "together, one-by-one, or the faster of them")
    slots: int | None = _with(None, "jobs side by side; none: by memory")

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, list):
                object.__setattr__(self, name, tuple(value))
        _check_types(self)
        _check_learning(self)
        if not self.dataset.endswith(".npz"):
            check_choice("dataset", self.dataset, DATASETS)
        check_choice("sampler", self.sampler, SAMPLERS)
        check_choice("scaling", self.scaling, SCALINGS)
        options = {"selectors": list(SELECTORS), "partitions": list(PARTITIONS)}
        for name, registered in options.items():
            for value in getattr(self, name):
                check_choice(name.removesuffix("s"), value, registered)
        for name in (
            "selectors",
            "partitions",
            "aggregations",
            "mus",
            "rates",
            "epochs",
            "targets",
        ):
            values = getattr(self, name)
            words = {
                f"{value:g}" if name in ("mus", "targets") and isinstance(value, float) else value
                for value in values
            }
            if not values or (len(words) < len(values) and name not in ("rates", "epochs")):
                raise ValueError(
                    f"{name} must be a list of at least one, each once, got {list(values)}"
                )
        check_int("clients", self.clients, len(self.rates), MAX_COUNT)
        check_int("cohort", self.cohort, 1, self.clients)
        for name in ("seeds", "rounds", "batch_size", "evaluate_every", "checkpoint_every"):
            check_int(name, getattr(self, name), 1, MAX_COUNT)
        for name in ("samples_per_client", "slots"):
            if getattr(self, name) is not None:
                check_int(name, getattr(self, name), 1, MAX_COUNT)
        check_int("first_seed", self.first_seed, 0, 2**62)
        check_int("official_every", self.official_every, 0)
        if not self.max_norm > 0:
            raise ValueError(f"max_norm must be above 0, got {self.max_norm!r}")
        if self.candidates is not None:
            check_int("candidates", self.candidates, self.cohort, self.clients)
        if self.precision != "float32" and self.device == "cpu":
            raise ValueError(f"precision must be float32 on a CPU, got {self.precision!r}")
        for name in ("learning_rate", "seconds_per_epoch", "server_rate"):
            check_positive(name, getattr(self, name))
        for name, values in (("rates", self.rates), ("targets", self.targets)):
            for value in values:
                check_range(name, value, 0.0, 1.0)
        for value in self.mus:
            check_range("mus", value, 0.0, 1e6)
        for value in self.epochs:
            check_int("epochs", value, 1, MAX_COUNT)
        check_range("momentum", self.momentum, 0.0, 1.0)
        check_range("server_momentum", self.server_momentum, 0.0, 1.0)
        check_range("test_fraction", self.test_fraction, 0.0, 0.9)
        check_range("jitter", self.jitter, 0.0, 10.0)
        if self.eta != "auto":
            check_positive("eta", self.eta)
        if self.deadline is not None:
            check_positive("deadline", self.deadline)

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "ComparisonConfig":
        """Return a comparison from plain values, as a TOML file gives them; unknown names are refused."""
        names = {setting.name for setting in fields(ComparisonConfig)}
        for name in values:
            check_choice("setting", name, sorted(names))
        try:
            return ComparisonConfig(**values)
        except TypeError as error:
            raise ValueError(
                f"settings must be of the types of the defaults, got: {error}"
            ) from None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    @property
    def last_second(self) -> float:
        """The deadline; unless one is given, the time that the most epochs take."""
        return (
            self.deadline
            if self.deadline is not None
            else self.seconds_per_epoch * max(self.epochs)
        )


def _check_learning(of: ComparisonConfig) -> None:
    """Refuse names that the learning part does not know; without PyTorch nothing is trained, and what is read was checked."""
    try:
        # imported here, not at the top: `--help` must not load PyTorch
        from fedcohort.learning.models import MODELS
        from fedcohort.learning.options import MODES, PRECISIONS
    except ModuleNotFoundError:
        return
    check_choice("model", of.model, MODELS)
    check_choice("precision", of.precision, PRECISIONS)
    check_choice("mode", of.mode, MODES)
    for value in of.aggregations:
        check_choice("aggregation", value, AGGREGATIONS)


def _check_types(of: ComparisonConfig) -> None:
    """Refuse values of another type than the default's, by name; whole numbers do for numbers."""
    for setting in fields(of):
        value, default = getattr(of, setting.name), setting.default
        wanted: tuple[type, ...] = (type(default),)
        if default is None or isinstance(default, float):
            wanted = (int, float) if default is not None else (int, float, type(None))
        if setting.name == "eta":
            wanted = (int, float, str)
        if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
            names = " or ".join(kind.__name__ for kind in wanted).replace("tuple", "list")
            raise ValueError(f"{setting.name} must be a {names}, got {value!r}")


@dataclass(frozen=True)
class RunKey:
    """Which run a row of the batch axis is."""

    selector: str
    partition: str
    aggregation: str
    mu: float
    seed: int


def run_keys(of: ComparisonConfig) -> list[RunKey]:
    """Return all runs in the order of the batch axis: those of one selector stand together."""
    seeds = range(of.first_seed, of.first_seed + of.seeds)
    return [
        RunKey(*row) for row in product(of.selectors, of.partitions, of.aggregations, of.mus, seeds)
    ]


def summary(of: ComparisonConfig, records: Arrays) -> list[dict[str, Any]]:
    """Return one row per partition, aggregation, mu and selector: means over seeds."""
    runs = run_keys(of)
    rows = []
    for key in product(of.partitions, of.aggregations, of.mus, of.selectors):
        mine = [
            row
            for row, p in enumerate(runs)
            if (p.partition, p.aggregation, p.mu, p.selector) == key
        ]
        rows.append(_row(of, key, {name: values[:, mine] for name, values in records.items()}))
    return rows


def _row(of: ComparisonConfig, key: tuple[str, str, float, str], records: Arrays) -> dict[str, Any]:
    partition, aggregation, mu, selector = key
    accuracy, elapsed = records["accuracy"], np.cumsum(records["seconds"], axis=0)
    final = accuracy[-1]
    counts = np.stack(
        [
            np.bincount(run.ravel(), minlength=of.clients)
            for run in records["clients"].swapaxes(0, 1)
        ]
    )
    row: dict[str, Any] = {"partition": partition, "aggregation": aggregation}
    if len(of.mus) > 1:
        row["mu"] = mu
    row["selector"] = selector
    for target in of.targets:
        rounds = first_at(accuracy, target)
        row[f"rounds to {target:g}"] = _mean(rounds)
        row[f"time to {target:g}"] = _mean(
            np.array([elapsed[int(r) - 1, run] if r == r else r for run, r in enumerate(rounds)])
        )
    return row | {
        "final": float(final.mean()),
        "sd": sd(final),
        "success": float(records["valid"].mean()),
        "Jain": float(jain(counts).mean()),
        "wasted s": float(records["wasted_seconds"].sum(axis=0).mean()),
        "wasted MB": float(records["wasted_bytes"].sum(axis=0).mean() / 1e6),
    }


def _mean(values: Floats) -> float:
    """Return the mean; nan if one run never got there."""
    return float(values.mean())


def curves(of: ComparisonConfig, records: Arrays) -> dict[str, dict[str, Floats]]:
    """Return accuracy [S, T] by kind of run and selector, for the figures."""
    runs, found = run_keys(of), {}
    for kind in product(of.partitions, of.aggregations, of.mus):
        title = f"{kind[0]}, {kind[1]}" + (f", mu {kind[2]:g}" if len(of.mus) > 1 else "")
        found[title] = {
            name: records["accuracy"][
                :,
                [
                    r
                    for r, p in enumerate(runs)
                    if (p.partition, p.aggregation, p.mu, p.selector) == (*kind, name)
                ],
            ].T
            for name in of.selectors
        }
    return found
