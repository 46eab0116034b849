"""How reports name things: schemes, partitions, update rules, quantities and runs."""

from collections.abc import Iterator, Sequence
from math import floor

from fedcohort.checks import check_choice
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.result import Result
from fedcohort.paper import published
from fedcohort.paper.cells import Cells, Quantity
from fedcohort.paper.setting import INDEPENDENT_DRAWS, PAPER

NON_IID = "non-iid"  # the paper's word for our partition `primary-label`
PARTITION_WORDS = ("iid", NON_IID, INDEPENDENT_DRAWS)  # those that --help names
MISSPELT = {"niid": NON_IID, "noniid": NON_IID, "non_iid": NON_IID}
FLOAT32_ERROR = 6e-8  # a float32 may differ from what it stands for by this part of itself
PARTITION_LABELS = {
    "primary-label": NON_IID,
    INDEPENDENT_DRAWS: "non-iid by independent draws",
}


def scheme_label(selector: str) -> str:
    """Return the paper's name of a scheme; ours if the paper has none."""
    return published.SCHEMES.get(selector, selector)


def partition_label(partition: str) -> str:
    """Return the paper's word for a partition."""
    return PARTITION_LABELS.get(partition, partition)


def parse_partition(word: str) -> str:
    """Return the partition that the paper's word means; our own names mean themselves.

    Raises:
        ValueError: If the word is none of them.
    """
    if word == NON_IID:
        return "primary-label"
    if word not in PAPER["partitions"]:
        check_choice("partition", word, PARTITION_WORDS, synonyms=MISSPELT)
    return word


def update_label(mu: float) -> str:
    """Return the paper's word for an update rule."""
    return published.UPDATES.get(mu, f"FedProx with mu {mu:g}")


def format_amount(number: float, quantity: Quantity) -> str:
    """Write rounds as whole numbers, and accuracies in percent."""
    if isinstance(quantity, str):
        return f"{100 * rounded(number, quantity):.2f}"
    return f"{rounded(number, quantity):.0f}"


def rounded(number: float, quantity: Quantity) -> float:
    """Return a number as `format_amount` writes it; halves, such as means of two, go up.

    Hardly any half of an accuracy is a float. So numbers that differ from one by no more than
    the float32 of the records may are halves, too.

    Examples:
        >>> rounded(580.5, 0.45), rounded(0.66125, "final"), rounded(0.00145, "final")
        (581.0, 0.6613, 0.0015)
    """
    scale = 10_000 if isinstance(quantity, str) else 1
    scaled = number * scale
    return floor(scaled + FLOAT32_ERROR * abs(scaled) + 0.5) / scale


def heading(quantity: Quantity) -> str:
    """Return the name of a column: "@45" for the first round at 45 %."""
    if isinstance(quantity, str):
        return quantity
    return f"@{100 * quantity:g}"


def title_on(dataset: str, task: str, title: str) -> str:
    """Return the title of an artefact, which says so if the data are not the paper's."""
    if dataset == task:
        return title
    return f"As {title}, on other data"


def describe_config(config: ComparisonConfig) -> str:
    """Return a config in a line, for titles."""
    size = f"K={config.clients}, k={config.cohort}, T={config.rounds}"
    return f"{config.dataset}, {size}, {config.sampler} sampling"


def describe_origin(*tables: Cells) -> list[str]:
    """Say what the runs of tables were computed with, and how long that took.

    Returns:
        One line for each part, that is for each batch of runs that were trained together.
    """
    lines: dict[str, None] = {}
    for run in _runs_of(tables):
        part = run.provenance.get("part", "Runs")
        lines[f"{part}: {_describe_software(run)}.{_describe_cost(run)}"] = None
    return list(lines)


def _runs_of(tables: tuple[Cells, ...]) -> Iterator[Result]:
    for table in tables:
        for runs in table.values():
            yield from runs


def _describe_software(run: Result) -> str:
    on_cpu = run.config.device == "cpu"
    words = [run.config.model, run.config.precision]
    if run.config.compiled and not on_cpu:  # nothing is compiled on a CPU
        words.append("compiled")
    device = run.provenance.get("gpu") or ("a CPU" if on_cpu else "a GPU")
    words.append(f"on {device}")
    for name in ("torch", "numpy", "fedcohort", "commit"):
        if run.provenance.get(name):
            words.append(f"{name} {run.provenance[name]}")
    return ", ".join(words)


def _describe_cost(run: Result) -> str:
    runs = run.provenance.get("runs")
    rounds = run.provenance.get("timed_rounds")
    seconds = run.provenance.get("seconds")
    steps = run.provenance.get("client_steps")
    if not (runs and rounds and seconds and steps):
        return ""
    speed = f"{steps / seconds:,.0f} client steps/s"
    return f" {runs} runs, {rounds} rounds: {seconds:,.0f} s, {speed}."


def describe_range(numbers: Sequence[float]) -> str:
    """Write the smallest and the largest number, such as "1 to 3"; a dash without any.

    Examples:
        >>> describe_range([3, 1, 2.5]), describe_range([2, 2]), describe_range([])
        ('1 to 3', '2', '-')
    """
    if not numbers:
        return "-"
    low = f"{min(numbers):.3g}"
    high = f"{max(numbers):.3g}"
    return low if low == high else f"{low} to {high}"
