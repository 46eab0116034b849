"""Decide the paper's claims about selection anew: who is asked, who answers, and the regret.

This file shares no code with fedcohort. It follows the words of results/claims.md: differences
paired by world, Student's t with the spread of their own seeds, and Holm's correction. It reads
from the committed CSV file only which comparisons a claim has.
"""

import csv
import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import recompute_claims
from recompute_selection import Records, check_rows, jain

LEVEL = 0.05


def wrong_choices(records):
    """Return 100 less how often the clients outside the best class were asked in all."""
    return records.measure("e3cs-0", lambda scheme: 100 - scheme.by_class[:, :-1].sum(axis=(1, 2)))


def wrong_choices_per_client(records):
    """Return 100 less how often a client outside the best class was asked on average."""
    return records.measure("e3cs-0", lambda scheme: 100 - scheme.by_class[:, :-1].mean(axis=(1, 2)))


def lead_of_best(records, name, sign):
    """Return how much more often the best class was asked than the next, per client."""
    factor = 1 if sign == "asks" else -1

    def ahead(scheme):
        means = scheme.by_class.mean(axis=2)
        return factor * (means[:, -1] - means[:, :-1].max(axis=1))

    return records.measure(name, ahead)


def share_of_updates(records):
    """Return the updates of E3CS-0 over those of FedCS, less 0.9."""
    ours = records.measure("e3cs-0", lambda scheme: scheme.successes.sum(axis=1))
    most = records.measure("fedcs", lambda scheme: scheme.successes.sum(axis=1))
    return {seed: ours[seed] / most[seed] - 0.9 for seed in ours.keys() & most.keys()}


def fairer_among_best(records):
    """Return Jain's index within the best class, of E3CS-0 less that of FedCS."""
    return lead(records, "e3cs-0", "fedcs", lambda scheme: jain(scheme.by_class[:, -1]))


def fairer(records, high, low):
    """Return Jain's index of one scheme less that of another."""
    return lead(records, high, low, lambda scheme: jain(scheme.counts))


def more_arrive(records, high, low):
    """Return the success ratio of one scheme less that of another."""
    return lead(records, high, low, lambda scheme: scheme.shares.mean(axis=1))


def more_arrive_in_tenth(records, number):
    """Return Random's success ratio in a tenth of the rounds less that of pow-d."""

    def ratio(scheme):
        tenth = scheme.shares.shape[1] // 10
        last = tenth * int(number)
        return scheme.shares[:, last - tenth : last].mean(axis=1)

    return lead(records, "random", "pow-d", ratio)


def lead(records, high, low, function):
    """Return what a function says of one scheme less what it says of another, by seed of both."""
    upper = records.measure(high, function)
    lower = records.measure(low, function)
    return {seed: upper[seed] - lower[seed] for seed in upper.keys() & lower.keys()}


def drops(scheme):
    """Return the updates in T/25 rounds before each round less those from it on, and T/25."""
    rounds = scheme.successes.shape[1]
    window = rounds // 25
    found = []
    for successes in scheme.successes:
        sums = np.convolve(successes, np.ones(window, dtype=np.int64), "valid")
        found.append(sums[:-window] - sums[window:])  # the first is that at round T/25
    return np.array(found), window


def drop_at_turn(records):
    """Return by how much the success ratio of E3CS-inc drops at T/4."""

    def drop(scheme):
        found, window = drops(scheme)
        turn = scheme.successes.shape[1] // 4
        return found[:, turn - window] / (window * scheme.cohort)

    return records.measure("e3cs-inc", drop)


def steepest_drop(records):
    """Return T/50 less how far the steepest drop of E3CS-inc is from T/4."""

    def nearness(scheme):
        found, window = drops(scheme)
        rounds = scheme.successes.shape[1]
        return rounds / 50 - abs(found.argmax(axis=1) + window - rounds // 4)

    return records.measure("e3cs-inc", nearness)


def margin(records, case):
    """Return the bound less the regret of a case."""
    return dict(enumerate(records.margins[case]))


COMPARISONS = (
    (r"wrong choices in all below 100", wrong_choices),
    (r"mean times asked below 100", wrong_choices_per_client),
    (r"(\S+) (asks|does not ask) the best class most", lead_of_best),
    (r"E3CS-0's CEP over FedCS's above 0\.9", share_of_updates),
    (r"Jain's index within the best class, E3CS-0 over FedCS", fairer_among_best),
    (r"fairness: (\S+) above (\S+)", fairer),
    (r"ratio: (\S+) above (\S+)", more_arrive),
    (r"Random above pow-d in tenth (\d+)", more_arrive_in_tenth),
    (r"success before less after T/4", drop_at_turn),
    (r"steepest drop within T/50 of T/4", steepest_drop),
    (r"bound less regret: (.*)", margin),
)


def supports_of(records: Records, comparison: str) -> dict[int, float]:
    """Return the supports of a comparison, by seed."""
    for pattern, function in COMPARISONS:
        match = re.fullmatch(pattern, comparison)
        if match:
            return function(records, *match.groups())
    raise ValueError(f"a comparison of another kind: {comparison}")


def check_claims(path: Path, records: Records) -> tuple[int, list[str]]:
    """Compare every claim about selection with the records.

    Returns:
        The number of values that were compared, and a line for each mismatch.
    """
    by_claim: dict[str, list[dict]] = {}
    for line in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        if line["on"] == "selection":
            by_claim.setdefault(line["claim"], []).append(line)

    compared = 0
    mismatches = []
    for rows in by_claim.values():
        ours = decide([supports_of(records, row["comparison"]) for row in rows])
        count, found = check_rows(rows, ours, names=("claim", "on", "comparison"))
        compared += count
        mismatches += found
    return compared, mismatches


def decide(all_supports: list[dict[int, float]]) -> list[dict]:
    """Return what the CSV file says of the comparisons of a claim."""
    different = {}
    for supports in all_supports:
        if supports:
            different[tuple(sorted(supports.items()))] = p_value(*summary(supports))
    corrected = holm(different)
    decisions = []
    for supports in all_supports:
        p = corrected.get(tuple(sorted(supports.items())), 1.0)
        decisions.append(judge(*summary(supports), p, len(different)))
    return decisions


def summary(supports):
    """Return the number of worlds, the mean support, its standard error and the degrees."""
    values = np.array([supports[seed] for seed in sorted(supports)], dtype=float)
    count = values.size
    mean = float(values.mean()) if count else math.nan
    if count < 2 or (count == 2 and values[0] == values[1]):
        return count, mean, math.nan, 0.0
    return count, mean, float(values.std(ddof=1)) / math.sqrt(count), count - 1.0


def p_value(worlds, mean, error, degrees):
    """Return the two-sided p-value of Student's t, 1 without a spread."""
    if not degrees:
        return 1.0
    if not error:
        return float(mean == 0)
    return recompute_claims.student(mean / error, degrees)


def holm(p_values):
    """Return p-values by key, corrected for their number by Holm's method."""
    corrected = {}
    highest = 0.0
    for place, key in enumerate(sorted(p_values, key=p_values.get)):
        highest = max(highest, min(1.0, p_values[key] * (len(p_values) - place)))
        corrected[key] = highest
    return corrected


def judge(worlds, mean, error, degrees, p, comparisons):
    """Return what the CSV file says of one comparison, given its corrected p-value."""
    verdict = "cannot be told"
    if p < LEVEL:
        verdict = "holds" if mean > 0 else "fails"
    if not worlds:
        verdict = "not run"
    smallest = "-"
    if degrees:
        smallest = f"{critical(LEVEL / comparisons, degrees) * error:+.3g}"
    return {
        "worlds": str(worlds),
        "decided by": "t",
        "support": mean,
        "in words": f"{mean:+.3g}" if worlds else "-",
        "standard error": error,
        "df": degrees,
        "corrected p": p,
        "smallest effect": smallest,
        "verdict": verdict,
    }


@cache
def critical(level, degrees):
    """Return the value that Student's t exceeds, to both sides, with a probability."""
    low, high = 0.0, 1e4
    for _ in range(60):
        middle = (low + high) / 2
        if recompute_claims.student(middle, degrees) > level:
            low = middle
        else:
            high = middle
    return high
