"""The settings to paste: a Flower strategy, and a TOML file that `compare` takes."""

from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np

from fedcohort.advice.broken import broken_clients
from fedcohort.advice.durations import Durations
from fedcohort.advice.log import FederationLog
from fedcohort.advice.persistence import Persistence
from fedcohort.advice.special_functions import normal_tail
from fedcohort.advice.together import Together
from fedcohort.advice.wording import printable
from fedcohort.arrays import Floats
from fedcohort.files import to_toml
from fedcohort.lab.config import ComparisonConfig

MOST_CLIENTS = 200  # of a comparison; the data of a small data set would not suffice for more
MOST_CLASSES = 5  # of clients that answer alike
LEAST_CORRELATION = 0.01  # worth a remark
ALIKE = 0.01  # rates that differ by less are one
LOWEST, HIGHEST = 0.01, 0.99  # rates of a comparison
ROUNDING = 0.001  # of a rate
MOST_NAMED = 3
DATASET = "digits"
MODEL = "mlp"
ROUNDS = 100
SEEDS = 3


def comparison_settings(
    log: FederationLog,
    rates: Floats,
    persistence: Persistence,
    durations: Durations | None,
    *,
    selectors: Sequence[str],
    rule: str = "normalised",
    cohort: int,
    deadline: float | None,
) -> dict[str, Any]:
    """Return settings of a comparison in a world like that of the log.

    Clients are sorted by their rates and put into at most five classes of equal size, each with
    its mean rate. Where failures last, rates that the world `markov` cannot have with failures of
    that length are moved to the nearest that it can have. More than 200 clients are represented
    by 200, with a cohort that is the same share of them.

    Args:
        log: The log.
        rates: How often each client answers in time with the given deadline [K].
        persistence: How long failures last.
        durations: How long answers take; None leaves times out.
        selectors: Selectors to compare.
        rule: Aggregation rule.
        cohort: Clients to ask per round.
        deadline: Deadline in seconds; None leaves times out.
    """
    own = np.sort(rates)
    times: dict[str, Any] = {}
    if durations is not None and deadline is not None:
        times = _times(durations, deadline)
        score = np.log(deadline / times["seconds_per_epoch"]) / max(times["jitter"], 1e-9)
        # The deadline takes its part on top, and `rates` are what is left when it has.
        own = own / (1 - normal_tail(score))
    clients = min(log.num_clients, MOST_CLIENTS)
    places = np.linspace(0, len(own) - 1, clients).round().astype(int)
    own = own[places]
    world = {}
    if persistence.is_certain:
        option = _choose_length(own, persistence)
        own = np.clip(own, *_possible_rates(option))
        world = {"world": "markov", "world_options": (option,)}
    shares = _class_means(np.clip(own, LOWEST, HIGHEST))
    settings: dict[str, Any] = {
        "dataset": DATASET,
        "model": MODEL,
        "selectors": tuple(selectors),
        "partitions": ("iid", "primary-label"),
        "aggregations": (rule,),
        "clients": clients,
        "cohort": max(1, min(clients, round(cohort * clients / log.num_clients))),
        "rounds": ROUNDS,
        "seeds": SEEDS,
        "rates": tuple(shares.tolist()),
        **world,
        **times,
    }
    ComparisonConfig.from_dict(settings)  # what we hand out must be accepted
    return settings


def settings_text(
    settings: dict[str, Any],
    log: FederationLog,
    together: Together,
    enough: int | None = None,
) -> str:
    """Return settings as TOML, with a comment that says where they come from.

    Args:
        settings: Settings of a comparison.
        log: The log that they were made from.
        together: Whether clients fail together, which the settings leave out.
        enough: Answers at which a round should close; None waits for all.
    """
    lines = [
        f"# Made from {printable(log.source)} by `fedcohort advise`: train in a world like it with"
    ]
    lines.append("# `fedcohort compare --config settings.toml`. Put in your own dataset and model.")
    if settings["clients"] < log.num_clients:
        lines.append(f"# {settings['clients']} clients stand for {log.num_clients:,}.")
    for option in settings.get("world_options", ()):
        low, high = _possible_rates(option)
        lines.append(
            f"# Failures last as long as in the log ({option} rounds). That allows rates from "
            f"{low:.2f} to {high:.2f}: others were moved there."
        )
    broken = [printable(log.clients[place]) for place in broken_clients(log)]
    if broken:
        lines.append(f"# Among the lowest rates: {_few(broken)}, whose updates were all rejected.")
    if together.is_certain and together.correlation.value >= LEAST_CORRELATION:
        lines.append(
            "# Left out: clients of the log fail together (correlation within a round "
            f"{together.correlation.value:.2f})."
        )
    if enough is not None:
        lines.append(f"# `compare` waits for all clients; only Flower closes with answer {enough}.")
    return "\n".join(lines) + "\n" + to_toml(settings)


def flower_snippet(
    *,
    selector: str,
    rule: str,
    cohort: int,
    clients: int,
    deadline: float | None,
    enough: int | None = None,
    is_guess: bool = False,
    to_try: float | None = None,
    is_too_short: bool = False,
) -> str:
    """Return the strategy to paste into a Flower server app.

    Args:
        selector: Name of the selector.
        rule: Name of the aggregation rule.
        cohort: Clients to ask per round.
        clients: Number of clients.
        deadline: Deadline in seconds; None if it is unknown.
        enough: Answers at which a round should close; None waits for all.
        is_guess: Whether the selector cannot be said for certain.
        to_try: A deadline that is better than this one, but perhaps not the best. It is handed
            out itself if this one is unknown.
        is_too_short: Whether the deadline keeps too few answers, and nobody knows a better one.
    """
    remark = "  # a guess: the log does not tell for certain" if is_guess else ""
    time = _deadline_line(deadline, to_try)
    if is_too_short:
        time += "; play a few rounds with a longer one"
    lines = [
        "from flwr.serverapp.strategy import FedAvg",
        "",
        "from fedcohort.flower import CohortStrategy",
        "",
        "strategy = CohortStrategy(",
        "    FedAvg(fraction_evaluate=0.0),",
        f'    "{selector}",{remark}',
        f"    cohort_size={cohort},",
        f"    num_clients={clients},",
        f"    deadline={time}",
        f'    aggregation="{rule}",',
        '    folder="state",',
        ")",
    ]
    if enough is not None:
        lines.insert(8, f"    enough={enough},  # a round closes with this many valid answers")
    return "\n".join(lines) + "\n"


def _deadline_line(deadline: float | None, to_try: float | None) -> str:
    """Return the deadline to paste, with a comment that says how far to trust it."""
    if deadline is None and to_try is None:
        return "60.0,  # seconds; a placeholder: the log does not say which deadline fits"
    if deadline is None:
        return f"{to_try:.4g},  # seconds; a guess: the log does not tell for certain"
    if to_try is None:
        return f"{deadline:.4g},  # seconds"
    return f"{deadline:.4g},  # seconds; try {to_try:.3g}"


def _times(durations: Durations, deadline: float) -> dict[str, Any]:
    """Return the settings of times; `compare` has one median for all clients."""
    median = float(np.exp(np.median(durations.log_median)))
    return {
        "epochs": (1,),
        "seconds_per_epoch": float(f"{median:.4g}"),
        "jitter": float(f"{_total_spread(durations):.3g}"),
        "deadline": float(f"{deadline:.4g}"),
    }


def _choose_length(rates: Floats, persistence: Persistence) -> str:
    """Return the option of `markov` that says how long failures last and changes rates least.

    No option suits all clients: one that answers in 99 of 100 rounds has a failure of one round
    or more in a cycle of 100 rounds or more, and one that seldom answers needs long failures.
    """
    off = persistence.off_rounds
    on = persistence.on_rounds
    options = [f"cycle={max(3, ceil(off + on))}", f"off={off:.3g}", f"on={on:.3g}"]

    def change(option: str) -> float:
        return float(np.abs(np.clip(rates, *_possible_rates(option)) - rates).sum())

    return min(options, key=change)


def _possible_rates(option: str) -> tuple[float, float]:
    """Return the lowest and highest rate with on and off times of at least one round."""
    name, text = option.split("=")
    rounds = float(text)
    low, high = {
        "cycle": (1 / rounds, 1 - 1 / rounds),
        "off": (1 / (1 + rounds), 1.0),
        "on": (0.0, rounds / (1 + rounds)),
    }[name]
    # Rates are rounded, and must be possible after that.
    return max(low + ROUNDING, LOWEST), min(high - ROUNDING, HIGHEST)


def _class_means(rates: Floats) -> Floats:
    """Return the mean rates of classes of similar clients, the lowest first."""
    number = min(MOST_CLASSES, len(rates))
    if rates[-1] - rates[0] < ALIKE:
        number = 1
    classes = np.array_split(rates, number)  # as `class_of` makes them
    return np.array([one.mean() for one in classes]).round(3)


def _total_spread(durations: Durations) -> float:
    """Return the spread of times over answers and clients; `compare` has one for both."""
    return float(np.hypot(durations.spread, durations.log_median.std()))


def _few(names: Sequence[str]) -> str:
    if len(names) > MOST_NAMED:
        return f"{len(names)} clients"
    return ", ".join(names)
