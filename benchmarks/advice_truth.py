"""How often advice is right: logs of worlds with known parameters, beside the truth.

`python benchmarks/advice_truth.py --logs 200 --replays 100` prints, for logs of 50 to 500 rounds,
how often each kind of interval holds the truth, how often the recommended deadline and selector are
within 5 % of the best in hindsight, and how often a wrong one was stated as sure. The same for
replay. `--jobs 2` measures in two processes. `--record` keeps the table in `results/explorations`,
from where `python scripts/fill_pages.py` copies it into the documentation.
"""

import argparse
from collections import Counter
from dataclasses import dataclass
from datetime import date
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from fedcohort.advice.advisor import Options, advise
from fedcohort.advice.deadline import KEEP
from fedcohort.advice.log import ARRIVED, FederationLog, Question, make_log
from fedcohort.advice.replays import asking_probabilities, replay
from fedcohort.advice.selector_play import play_selectors
from fedcohort.advice.selectors import CANDIDATES, FAIR
from fedcohort.lab.environment import describe_environment
from fedcohort.rng import stream
from fedcohort.selection.protocol import Outcome
from fedcohort.selection.registry import Federation, make_selector
from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.groups import group_of
from fedcohort.world.markov import on_off

TOLERANCE = 0.05
AHEAD = 150  # rounds in which selectors are compared
TRUTH_RUNS = 40
REPLAY_RUNS = 20  # of a selector in worlds of its own, for what `replay` estimates
RECORD = Path(__file__).parents[1] / "results/explorations/advice.md"


@dataclass
class Truth:
    """A world whose parameters are known."""

    kind: str
    clients: int
    cohort: int
    rounds: int
    rates: np.ndarray  # how often each client answers at all
    medians: np.ndarray  # seconds
    spread: float
    deadline: float
    cycle: float  # rounds of an on time and an off time together; 0: failures do not last
    groups: int
    up: float
    change: int | None  # first round with the rates in reverse

    def rows(self, seed: int, rounds: int, after: bool = False) -> np.ndarray:
        """Return who would answer at all, [T, K]."""
        rates = self.rates[::-1] if after else self.rates
        if self.kind == "markov":
            mean_on = np.maximum(rates * self.cycle, 1.0)
            mean_off = np.maximum((1 - rates) * self.cycle, 1.0)
            source = on_off(rates, mean_on, mean_off, stream(seed, "truth"))
            return np.stack([next(source) for _ in range(rounds)])
        source = bernoulli(rates, stream(seed, "truth"))
        table = np.stack([next(source) for _ in range(rounds)])
        if self.kind == "groups":
            shape = np.full(self.groups, self.up)
            chains = on_off(
                shape,
                np.full(self.groups, 1 / (1 - self.up)),
                np.full(self.groups, 1 / self.up),
                stream(seed, "groups"),
            )
            is_up = np.stack([next(chains) for _ in range(rounds)])
            table &= is_up[:, group_of(self.clients, self.groups)]
        if self.kind == "change" and not after and self.change is not None:
            late = self.rows(seed + 1, rounds, after=True)
            table[self.change :] = late[self.change :]
        return table

    def times(self, seed: int, rounds: int) -> np.ndarray:
        """Return the seconds of every answer, [T, K]."""
        scores = stream(seed, "times").standard_normal((rounds, self.clients))
        return self.medians * np.exp(self.spread * scores)

    @property
    def in_time(self) -> np.ndarray:
        """How often each client answers before the deadline, in the end."""
        rates = self.rates[::-1] if self.kind == "change" else self.rates
        if self.kind == "groups":
            rates = rates * self.up
        return rates * share_before(self, self.deadline)


def share_before(truth: Truth, deadline: float) -> np.ndarray:
    from fedcohort.advice.special_functions import normal_tail

    return 1 - normal_tail((np.log(deadline) - np.log(truth.medians)) / truth.spread)


def draw_truth(seed: int) -> Truth:
    rng = stream(seed, "draw")
    kind = ("bernoulli", "markov", "groups", "change")[seed % 4]
    clients = int(rng.integers(20, 61))
    rounds = int(np.round(np.exp(rng.uniform(np.log(50), np.log(500)))))
    low, high = np.sort(rng.uniform(0.15, 0.95, size=2))
    rates = np.sort(rng.uniform(low, max(high, low + 0.05), size=clients))
    if kind == "change":
        rates = np.sort(np.clip(np.linspace(0.1, 0.9, clients), 0.0, 1.0))
    spread = float(rng.uniform(0.2, 0.6))
    medians = 20.0 * np.exp(rng.uniform(0.0, 0.5) * rng.standard_normal(clients))
    deadline = float(20.0 * rng.uniform(1.2, 4.0))
    return Truth(
        kind=kind,
        clients=clients,
        cohort=max(4, clients // int(rng.integers(3, 7))),
        rounds=rounds,
        rates=rates,
        medians=medians,
        spread=spread,
        deadline=deadline,
        cycle=float(rng.uniform(8, 20)),
        groups=4,
        up=0.75,
        change=rounds // 2,
    )


def make_truth_log(truth: Truth, seed: int, selector: str = "random") -> FederationLog:
    answers = truth.rows(seed, truth.rounds)
    times = np.where(answers, truth.times(seed, truth.rounds), np.inf)
    federation = Federation(truth.clients, truth.cohort, rng=seed, horizon=truth.rounds)
    chooser = make_selector(selector, federation)
    questions = []
    lengths = {}
    for round in range(truth.rounds):
        cohort = chooser.select(round)
        own = times[round, cohort.clients]
        arrived = own <= truth.deadline
        chooser.update(Outcome(cohort, arrived))
        lengths[round + 1] = float(np.minimum(own.max(), truth.deadline))
        for client, p, time, came in zip(
            cohort.clients, cohort.inclusion, own, arrived, strict=True
        ):
            seconds = float(time) if came else np.nan
            status = ARRIVED if came else "lost"
            questions.append(
                Question(
                    round + 1, str(client), bool(came), seconds, inclusion=float(p), status=status
                )
            )
    names = tuple(map(str, range(truth.clients)))
    return make_log(
        "simulated",
        questions,
        names=names,
        round_seconds=lengths,
        deadline=truth.deadline,
        selector=selector,
    )


def deadline_values(truth: Truth, deadlines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return answers per second and share kept at deadlines, under uniform selection."""
    rounds = 4000
    after = truth.kind == "change"
    answers = truth.rows(99_991, rounds, after=after)
    times = np.where(answers, truth.times(99_991, rounds), np.inf)
    order = stream(99_991, "cohorts").random(times.shape).argsort(axis=1)[:, : truth.cohort]
    own = np.take_along_axis(times, order, axis=1)
    last = own.max(axis=1)
    speed = []
    count = []
    for deadline in deadlines:
        got = (own <= deadline).sum(axis=1).mean()
        speed.append(got / np.minimum(last, deadline).mean())
        count.append(got)
    ever = np.isfinite(own).sum(axis=1).mean()
    return np.array(speed), np.array(count) / max(ever, 1e-9)


def check_deadline(truth: Truth, best: float) -> float:
    """Return what a deadline loses against the best in hindsight."""
    grid = np.geomspace(3.0, 400.0, 250)
    speed, kept = deadline_values(truth, np.append(grid, best))
    top = np.where(kept[:-1] >= KEEP, speed[:-1], 0.0).max()
    return float(max(1 - speed[-1] / top, KEEP - kept[-1]))


def check_selector(truth: Truth, best: str, names: tuple[str, ...]) -> float:
    """Return what a selector loses against the best in hindsight that is fair enough."""
    world = np.empty((AHEAD, TRUTH_RUNS, truth.clients), dtype=np.bool_)
    after = truth.kind == "change"
    for run in range(TRUTH_RUNS):
        seed = 50_000 + run
        answers = truth.rows(seed, AHEAD, after=after)
        world[:, run] = answers & (truth.times(seed, AHEAD) <= truth.deadline)
    played = play_selectors(world, truth.cohort, names)
    fair = [name for name in names if played[name].least_asked >= FAIR]
    top = max(played[name].arrivals.mean() for name in fair)
    loss = float(1 - played[best].arrivals.mean() / top)
    return max(loss, FAIR - played[best].least_asked)


def true_correlation(truth: Truth) -> float:
    """Return the correlation of successive rounds within clients, for the whole log."""
    share = share_before(truth, truth.deadline)
    rates = truth.rates * share
    within = rates * (1 - rates)
    if truth.kind == "groups":
        rates = rates * truth.up
        within = rates * (1 - rates)
        return 0.0
    if truth.kind != "markov":
        return 0.0
    decay = 1 - 1 / np.maximum(truth.rates * truth.cycle, 1.0)
    decay = decay - 1 / np.maximum((1 - truth.rates) * truth.cycle, 1.0)
    covariance = share**2 * truth.rates * (1 - truth.rates) * decay
    return float(covariance.mean() / within.mean())


def true_together(truth: Truth) -> float:
    """Return the mean correlation of two clients in a round."""
    if truth.kind != "groups":
        return 0.0
    own = truth.rates * share_before(truth, truth.deadline)
    rates = own * truth.up
    deviation = np.sqrt(rates * (1 - rates))
    group = group_of(truth.clients, truth.groups)
    same = (group[:, None] == group) & ~np.eye(truth.clients, dtype=bool)
    covariance = np.outer(own, own) * truth.up * (1 - truth.up)
    correlation = np.where(same, covariance / np.outer(deviation, deviation), 0.0)
    return float(correlation.sum() / (truth.clients * (truth.clients - 1)))


def holds(interval, value: float) -> bool:
    return bool(interval.low <= value <= interval.high)


def measure(seed: int, count: Counter) -> str:
    """Add what a log's advice got right to the counts; return a line about it."""
    truth = draw_truth(seed)
    log = make_truth_log(truth, seed)
    found = advise(log, Options(rounds=AHEAD, seed=seed))
    kind = truth.kind
    count["logs"] += 1
    is_split = kind == "change"
    is_found = found.change.is_certain
    if is_split:
        count["changes, of"] += 1
        count["changes"] += is_found
        if is_found:
            first = 0 if found.change.first is None else found.change.first
            last = truth.rounds if found.change.last is None else found.change.last
            count["time of change"] += first <= truth.change <= last
            count["time of change, of"] += 1
    else:
        count["no change, of"] += 1
        count["no change"] += not is_found
    if not is_split or is_found:
        inside = (found.rates.low <= truth.in_time) & (truth.in_time <= found.rates.high)
        count["client rates"] += int(inside.sum())
        count["client rates, of"] += truth.clients
        count["success"] += holds(found.success, truth.in_time.mean())
        count["success, of"] += 1
        count["waste"] += holds(found.waste.share, 1 - truth.in_time.mean())
        count["waste, of"] += 1
        count["successive rounds"] += holds(found.persistence.next_round, true_correlation(truth))
        count["successive rounds, of"] += 1
        count["within a round"] += holds(found.together.correlation, true_together(truth))
        count["within a round, of"] += 1

    line = f"{seed:4d} {kind:9s} T={truth.rounds:3d} K={truth.clients:2d} k={truth.cohort:2d}"
    if found.deadline is not None:
        loss = check_deadline(truth, found.deadline.best)
        line += f" deadline {found.deadline.best:6.1f} loses {loss:6.3f}"
        line += f" said {found.deadline.is_said}"
        judge(count, "deadline", loss, found.deadline.is_said)
    loss = check_selector(truth, found.selector.best, CANDIDATES)
    line += f" {found.selector.best:15s} loses {loss:6.3f} said {found.selector.is_said}"
    judge(count, "selector", loss, found.selector.is_said)
    return line


def judge(count: Counter, what: str, loss: float, is_said: bool) -> None:
    """Count whether a recommendation is within 5 % of the best, and whether it was sure."""
    is_right = loss <= TOLERANCE
    count[f"{what} within 5 %, of"] += 1
    count[f"{what} within 5 %"] += is_right
    count[f"{what} right and sure, of"] += is_right
    count[f"{what} right and sure"] += is_right and is_said
    count[f"{what} wrong but sure, of"] += 1
    count[f"{what} wrong but sure"] += is_said and not is_right


def own_answers(truth: Truth, name: str, seed: int) -> float:
    """Return the expected answers per round of a selector that asks and learns itself."""
    total = 0.0
    for run in range(REPLAY_RUNS):
        world = 60_000 + REPLAY_RUNS * seed + run
        answers = truth.rows(world, truth.rounds)
        answers &= truth.times(world, truth.rounds) <= truth.deadline
        federation = Federation(truth.clients, truth.cohort, rng=world, horizon=truth.rounds)
        chooser = make_selector(name, federation)
        for round in range(truth.rounds):
            cohort = chooser.select(round)
            chooser.update(Outcome(cohort, answers[round, cohort.clients]))
            total += float(truth.in_time[cohort.clients].sum())
    return total / (REPLAY_RUNS * truth.rounds)


def measure_replay(seed: int, count: Counter) -> str:
    """Add whether the intervals of replay hold the truth to the counts."""
    truth = draw_truth(4 * seed)  # independent answers
    truth.rounds = max(truth.rounds, 100)
    names = ("random", "e3cs-0.5", "e3cs-0.8", "e3cs-robust", "e3cs-linear", "e3cs-0")
    name = names[seed % len(names)]
    log = make_truth_log(truth, seed, ("random", "e3cs-0.5")[seed % 2])
    (found,) = replay(log, [name], seed)
    value = float((asking_probabilities(log, name, seed) @ truth.in_time).mean())
    line = f"{seed:4d} {log.selector:9s} -> {name:12s} T={truth.rounds:3d}"
    line += f" {found.robust.low:.2f} {value:.2f} {found.robust.high:.2f} n={found.effective:.0f}"
    if found.refusal:
        count["refused"] += 1
        return line + " refused"
    for kind in ("robust", "normalised", "inverse"):
        count[f"replay, {kind}"] += holds(getattr(found, kind), value)
        count[f"replay, {kind}, of"] += 1
    count["replay, own runs"] += holds(found.robust, own_answers(truth, name, seed))
    count["replay, own runs, of"] += 1
    return line


ROWS = {
    "client rates": "interval of a client's rate holds it",
    "success": "interval of the share of answers holds it",
    "successive rounds": "interval of the correlation of successive rounds holds it",
    "within a round": "interval of the correlation within a round holds it",
    "changes": "a change of all rates is found",
    "time of change": "and the interval of its round holds it",
    "no change": "no change is found where there is none",
    "deadline within 5 %": "deadline is within 5 % of the best",
    "deadline right and sure": "and stated as sure",
    "deadline wrong but sure": "deadline is wrong, but stated as sure",
    "selector within 5 %": "selector is within 5 % of the best",
    "selector right and sure": "and stated as sure",
    "selector wrong but sure": "selector is wrong, but stated as sure",
    "replay, robust": "doubly robust interval of `replay` holds the truth",
    "replay, own runs": "and the mean of runs in which the selector learns from its own cohorts",
    "replay, normalised": "self-normalised interval of `replay` holds the truth",
    "replay, inverse": "inverse-propensity interval of `replay` holds the truth",
}


def table(count: Counter) -> list[str]:
    """Return the counts as lines of a table in Markdown."""
    lines = ["| what | times | share |", "| --- | --- | --- |"]
    for name, words in ROWS.items():
        total = count[f"{name}, of"]
        if total:
            share = 100 * count[name] / total
            lines.append(f"| {words} | {count[name]:,} of {total:,} | {share:.1f} % |")
    if count["refused"]:
        lines.append(f"| `replay` refuses a log that says too little | {count['refused']} | |")
    return lines


def write_record(lines: list[str], first: int, logs: int, replays: int) -> None:
    """Keep the table where pages copy it from."""
    seeds = f"--first {first} --logs {logs} --replays {replays}"
    command = f"python benchmarks/advice_truth.py {seeds} --record"
    versions = describe_environment()
    del versions["machine"]  # the counts do not depend on it
    commit = versions.pop("commit")
    named = ", ".join(f"{name} {number}" for name, number in versions.items())
    origin = f"Date: {date.today()}. Commit: {commit}. Versions: {named}."
    title = f"# Advice beside the truth\n\n`{command}`\n\n{origin}\n\n"
    text = f"{title}## How often advice is right\n\n"
    RECORD.write_text(text + "\n".join(lines) + "\n", encoding="utf-8")


def measure_job(job: tuple[str, int]) -> tuple[str, Counter]:
    """Return what one log or replay gives, for a process of its own."""
    kind, seed = job
    count: Counter = Counter()
    measure_one = measure if kind == "log" else measure_replay
    return measure_one(seed, count), count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--replays", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="seed of the first log")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.name}")
    given = parser.parse_args()
    jobs = [("log", seed) for seed in range(given.first, given.first + given.logs)]
    jobs += [("replay", seed) for seed in range(given.first, given.first + given.replays)]
    count: Counter = Counter()
    with get_context("spawn").Pool(given.jobs) as pool:
        for line, found in pool.imap(measure_job, jobs):
            print(line, flush=True)
            count.update(found)
    lines = table(count)
    print("\n".join(lines))
    if given.record:
        write_record(lines, given.first, given.logs, given.replays)


if __name__ == "__main__":
    main()
