"""What is disturbed when: the schedule of an episode, drawn from the seed."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

CLIENTS = 5
COHORT = 4
ROUNDS = 6
DEADLINE = 20.0  # seconds; a round of healthy clients takes 5 to 10 on two busy cores
HEALTHY = ("0", "1")  # clients that are never ordered to do harm, so every round has somebody

# What a client does when it is asked, see `app/havoc/client.py`.
UNACCEPTABLE = (
    "nan",
    "shape",
    "type",
    "header",
    "garbage",
    "huge",
    "examples",
    "weight",
    "loss",
    "forged",
    "raise",
    "crash",
    "hang",
    "late",
    "slow",
)
# The update itself is good. It may count or not, but it must not harm others.
TOLERABLE = ("extra", "clock")
HARMS = UNACCEPTABLE + TOLERABLE
HARM_SHARE = 0.8  # of the rounds of the clients that may do harm
SLOW_HARMS = ("crash", "hang", "late", "slow")  # drawn half as often: a round waits for them

HARM_WEIGHTS = {harm: 1 if harm in SLOW_HARMS else 2 for harm in HARMS}

# Disturbances of processes, machines and disks, with their weights in the draw.
ON_CLIENTS = {
    "client-kill": 3,
    "client-term": 2,
    "client-stop": 3,
    "client-leave": 1,
    "client-join": 2,
    "client-skewed": 2,
    "silent-nodes": 2,
}
ON_SERVER = {
    "server-kill": 3,
    "server-term": 2,
    "server-stop": 2,
    "link-kill": 2,
    "link-term": 1,
    "link-stop": 2,
    "link-stop-long": 1,
    "folder-full": 2,
    "folder-read-only": 2,
}
SKEWS = ("-30", "-2", "+2", "+60")  # seconds


@dataclass(frozen=True)
class Disturbance:
    """A disturbance that the harness carries out.

    Attributes:
        kind: What is done.
        round: The round in which it begins.
        delay: Seconds after the end of the round before.
        target: The client, if it concerns one.
        seconds: How long it lasts, for those that end.
        skew: Seconds by which a client's clock is wrong, as faketime takes them.
    """

    kind: str
    round: int
    delay: float
    target: str = ""
    seconds: float = 0.0
    skew: str = ""


@dataclass(frozen=True)
class Episode:
    """One run, and all that disturbs it.

    Attributes:
        seed: Seed of the whole harness.
        number: Number of the episode.
        harms: What clients do, by round and client.
        disturbances: What happens to processes and disks, in the order of time.
    """

    seed: int
    number: int
    harms: dict[str, dict[str, str]]
    disturbances: list[Disturbance]

    @property
    def run_seed(self) -> int:
        """Seed of the selector."""
        return 1000 * self.seed + self.number

    def as_json(self) -> dict[str, Any]:
        """Return the schedule as plain values."""
        return asdict(self)


def draw_episode(seed: int, number: int) -> Episode:
    """Return an episode; the same seed and number give the same one."""
    rng = np.random.default_rng([seed, number])
    harms = _draw_harms(rng)
    disturbances = [_draw_on_clients(rng) for _ in range(int(rng.integers(1, 4)))]
    for _ in range(int(rng.integers(0, 3))):
        disturbances.append(_draw_on_server(rng))
    disturbances.sort(key=lambda one: (one.round, one.delay))
    return Episode(seed, number, harms, disturbances)


def _draw_harms(rng: np.random.Generator) -> dict[str, dict[str, str]]:
    harms: dict[str, dict[str, str]] = {}
    for round in range(1, ROUNDS + 1):
        ordered = {}
        for client in range(len(HEALTHY), CLIENTS):
            if rng.random() < HARM_SHARE:
                ordered[str(client)] = _draw_kind(rng, HARM_WEIGHTS)
        harms[str(round)] = ordered
    return harms


def _draw_on_clients(rng: np.random.Generator) -> Disturbance:
    return Disturbance(
        kind=_draw_kind(rng, ON_CLIENTS),
        round=int(rng.integers(1, ROUNDS + 1)),
        delay=_draw_seconds(rng, 0.0, 8.0),
        target=str(rng.integers(1, CLIENTS)),  # client 0 is never touched
        seconds=_draw_seconds(rng, 2.0, 30.0),
        skew=str(rng.choice(SKEWS)),
    )


def _draw_on_server(rng: np.random.Generator) -> Disturbance:
    kind = _draw_kind(rng, ON_SERVER)
    seconds = _draw_seconds(rng, 2.0, 8.0)
    if kind == "link-stop-long":
        seconds = DEADLINE + 4.0
    if kind.startswith("folder"):
        seconds = _draw_seconds(rng, DEADLINE, DEADLINE + 10.0)  # the end of a round writes
    return Disturbance(
        kind=kind,
        round=int(rng.integers(2, ROUNDS + 1)),
        delay=_draw_seconds(rng, 0.0, 6.0),
        seconds=seconds,
    )


def _draw_kind(rng: np.random.Generator, weights: dict[str, int]) -> str:
    shares = np.array(list(weights.values()), dtype=np.float64)
    return str(rng.choice(list(weights), p=shares / shares.sum()))


def _draw_seconds(rng: np.random.Generator, low: float, high: float) -> float:
    return round(float(rng.uniform(low, high)), 2)
