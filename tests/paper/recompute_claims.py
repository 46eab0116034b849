"""Decide the paper's claims about training anew, from the Parquet files alone.

This file shares no code with fedcohort. It follows the words of results/claims.md: differences
paired by world, noise of a two-way layout pooled over groups, a noise of its own for FedCS,
Satterthwaite's degrees of freedom, Student's t or a sign test, and Holm's correction. It reads from
the committed CSV file only which comparisons a claim has.
"""

import csv
import math
import re
from itertools import product
from pathlib import Path

import numpy as np

SCHEMES = ("e3cs-0", "e3cs-0.5", "e3cs-0.8", "e3cs-inc", "fedcs", "pow-d", "random")
GROUPS = list(product(("iid", "primary-label"), (0.0, 0.5), (10, 20, 30)))
PARTITIONS = {"iid": "iid", "non-iid": "primary-label"}
UPDATES = {"FedAvg": 0.0, "FedProx": 0.5}
PATTERNS = (
    (r"(\S+) (?:(\d+) times )?before (\S+), (.*)", "before"),
    (r"(\S+) ends (at most 1 point below|above) (\S+), (.*)", "ends"),
    (r"(\S+) faster with k=(\d+) than with (\d+), (.*)", "faster"),
    (r"(\S+) ends higher with k=(\d+) than with (\d+), (.*)", "higher"),
    (r"(\S+): higher loss of the class that fails most, (.*)", "loss"),
)


class Records:
    """Runs by scheme, partition, update and cohort size, and then by world.

    Args:
        runs: Rows of a Parquet file, with settings parsed and accuracies as arrays.
        wanted: Settings that the runs have.
        targets: The accuracies of the claims, the lowest first.
    """

    def __init__(self, runs, wanted, targets):
        self.targets = targets
        self.noises = {}
        self.cells = {}
        for row in runs:
            settings = row["settings"]
            if row["aggregation"] != "paper" or settings.get("candidates") is not None:
                continue
            if any(settings[name] != value for name, value in wanted.items() if name != "refill"):
                continue
            if row["partition"] != "iid" and settings["refill"] != wanted.get("refill", True):
                continue
            key = (row["selector"], row["partition"], row["mu"], row["cohort"])
            self.cells.setdefault(key, {})[row["seed"]] = row

    def runs(self, scheme, group):
        """Return the runs of a scheme in a group, by world."""
        return self.cells.get((scheme, *group), {})

    def finals(self, scheme, group):
        """Return the final accuracy of finished runs, by world."""
        found = {}
        for seed, row in self.runs(scheme, group).items():
            if len(row["accuracy"]) == row["rounds"]:
                found[seed] = float(row["accuracy"][-1])
        return found

    def reached(self, scheme, group, target):
        """Return the log of the first round at a target, by world of the runs that got there."""
        found = {}
        for seed, row in self.runs(scheme, group).items():
            hits = np.flatnonzero(row["accuracy"] >= np.float32(target))
            if hits.size:
                found[seed] = math.log(hits[0] + 1)
        return found

    def loss_gaps(self, scheme, group):
        """Return by how much the first class's loss is above the last's, of finished runs."""
        found = {}
        for seed, row in self.runs(scheme, group).items():
            losses = row.get("class_loss")
            if losses is None or len(row["accuracy"]) != row["rounds"]:
                continue
            gap = losses[0] - losses[-1]
            if math.isfinite(gap):
                found[seed] = gap
        return found

    def values(self, scheme, group, quantity):
        """Return logs of first rounds at a target, or final accuracies, by world."""
        if quantity == "final":
            return self.finals(scheme, group)
        return self.reached(scheme, group, quantity)

    def horizon(self):
        """Return the planned number of rounds."""
        return next(row["rounds"] for cell in self.cells.values() for row in cell.values())


def noise_of(records, quantity):
    """Return the noise of a run and of FedCS, as (variance, degrees, variance, degrees, share)."""
    squares = degrees = apart = apart_degrees = shares = 0.0
    for group in GROUPS:
        rows = {}
        for scheme in SCHEMES:
            rows[scheme] = records.values(scheme, group, quantity)
        fedcs = rows.pop("fedcs")
        if quantity != "final":
            together = [*rows["e3cs-0"].values(), *rows["e3cs-inc"].values()]
            if together and max(together) <= math.log(records.horizon() // 4):
                del rows["e3cs-inc"]  # one scheme until a quarter of the rounds
        kept = []
        for values in rows.values():
            if values and values not in kept:
                kept.append(values)
        left, freedom = residual_squares(kept)
        squares += left
        degrees += freedom

        complete = [values for values in kept if fedcs.keys() <= values.keys()]
        if len(fedcs) > 1 and complete:
            leads = []
            for seed, value in fedcs.items():
                leads.append(value - np.mean([values[seed] for values in complete]))
            apart += float(np.var(leads)) * len(leads)
            apart_degrees += len(leads) - 1
            shares += (len(leads) - 1) / len(complete)
    return (
        squares / degrees if degrees else math.nan,
        degrees,
        apart / apart_degrees if apart_degrees else math.nan,
        apart_degrees,
        shares / apart_degrees if apart_degrees else math.nan,
    )


def residual_squares(rows):
    """Return what effects of scheme and world leave, squared and summed, and its degrees."""
    cells = []
    for number, row in enumerate(rows):
        for seed, value in row.items():
            cells.append((number, seed, value))
    if not cells:
        return 0.0, 0
    seeds = sorted({seed for _, seed, _ in cells})
    design = np.zeros((len(cells), len(rows) + len(seeds)))
    for place, (number, seed, _) in enumerate(cells):
        design[place, number] = 1
        design[place, len(rows) + seeds.index(seed)] = 1
    values = np.array([value for _, _, value in cells])
    left = values - design @ (np.linalg.pinv(design) @ values)
    return float((left**2).sum()), len(cells) - int(np.linalg.matrix_rank(design))


def of_difference(records, quantity, first, second):
    """Return variance and degrees of freedom of the difference of two schemes in one world."""
    if quantity not in records.noises:
        records.noises[quantity] = noise_of(records, quantity)
    one, degrees, apart, apart_degrees, share = records.noises[quantity]
    if "fedcs" not in (first, second):
        return 2 * one, degrees
    if not degrees or not apart_degrees:
        return math.nan, 0
    other = one * (1 - share)
    spent = apart**2 / apart_degrees + other**2 / degrees
    return apart + other, (apart + other) ** 2 / spent


def compare_rounds(records, slow, fast, target, factor):
    """Return supports that one (scheme, group) reaches a target before another, and if by signs."""
    supports = {}
    by_signs = False
    lead = math.log(factor)
    slow_runs = records.runs(*slow)
    fast_runs = records.runs(*fast)
    late = records.reached(*slow, target)
    early = records.reached(*fast, target)
    for seed in slow_runs.keys() & fast_runs.keys():
        if seed in late and seed in early:
            supports[seed] = late[seed] - early[seed] - lead
        elif seed in early:
            least = math.log(len(slow_runs[seed]["accuracy"]) + 1) - early[seed] - lead
            if least > 1e-9:
                supports[seed] = least
                by_signs = True
        elif seed in late:
            most = late[seed] - math.log(len(fast_runs[seed]["accuracy"]) + 1) - lead
            if most < -1e-9:
                supports[seed] = most
                by_signs = True
    return supports, by_signs


def differences(high, low, lead=0.0):
    """Return by how much values lie above others and a lead, by world of both."""
    return {seed: high[seed] - low[seed] - lead for seed in high.keys() & low.keys()}


def group_in(words, cohort=20):
    """Return the group that words name, such as "non-iid, FedProx, k=10"."""
    partition = mu = None
    for word in words.split(", "):
        partition = PARTITIONS.get(word, partition)
        mu = UPDATES.get(word, mu)
        if word.startswith("k="):
            cohort = int(word[2:])
    return partition, 0.0 if mu is None else mu, cohort


def supports_of(records, comparison):
    """Return the supports of a comparison, whether signs decide it, and its noise or None.

    None instead of all three means that the comparison is of another kind.
    """
    for pattern, kind in PATTERNS:
        match = re.fullmatch(pattern, comparison)
        if not match:
            continue
        words = match.groups()
        if kind == "before":
            fast, factor, slow, where = words
            group = group_in(where)
            at = re.search(r"@(\d+)", where)
            target = records.targets[0]
            if at:
                target = int(at.group(1)) / 100
            found = compare_rounds(records, (slow, group), (fast, group), target, int(factor or 1))
            return *found, of_difference(records, target, fast, slow)
        if kind == "ends":
            high, relation, low, where = words
            group = group_in(where)
            lead = 0.0 if relation == "above" else -0.01
            found = differences(records.finals(high, group), records.finals(low, group), lead)
            return found, False, of_difference(records, "final", high, low)
        if kind == "loss":
            scheme, where = words
            return records.loss_gaps(scheme, group_in(where)), False, None
        scheme, many, few, where = words
        larger = group_in(where, int(many))
        smaller = group_in(where, int(few))
        if kind == "higher":
            found = differences(records.finals(scheme, larger), records.finals(scheme, smaller))
            return found, False, None
        target = records.targets[0]
        found = compare_rounds(records, (scheme, smaller), (scheme, larger), target, 1)
        return *found, None
    return None


def p_value(supports, by_signs, noise):
    """Return the two-sided p-value of supports, 1 if nothing tells it."""
    values = np.array([supports[seed] for seed in sorted(supports)])
    if by_signs:
        above, below = int((values > 0).sum()), int((values < 0).sum())
        count = above + below
        tail = sum(math.comb(count, number) for number in range(min(above, below) + 1))
        return min(1.0, tail / 2 ** (count - 1))
    if noise is None:
        if len(values) < 2 or (len(values) == 2 and values[0] == values[1]):
            return 1.0
        noise = (float(values.var(ddof=1)), len(values) - 1)
    variance, degrees = noise
    if not degrees or not values.size:
        return 1.0
    return student(float(values.mean()) / math.sqrt(variance / len(values)), degrees)


def student(t, degrees):
    """Return the two-sided p-value of Student's t, by Simpson's rule over the angle.

    With t = tan(angle) * sqrt(degrees) the density is a power of the cosine.
    """
    angle = math.atan2(abs(t), math.sqrt(degrees))
    scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - math.log(math.pi) / 2
    angles = np.linspace(angle, math.pi / 2, 20_001)
    heights = np.cos(angles) ** (degrees - 1)
    weights = np.ones(angles.size)
    weights[1:-1:2] = 4
    weights[2:-1:2] = 2
    area = float((weights * heights).sum()) * (angles[1] - angles[0]) / 3
    return min(1.0, 2 * math.exp(scale) * area)


def check_claims(path: Path, on: str, records: Records) -> tuple[int, list[str]]:
    """Compare every claim whose comparisons are of the known kinds with the records.

    Args:
        path: The committed CSV file.
        on: What the claims are about, as the file calls it.
        records: The runs on it.

    Returns:
        The number of comparisons that were compared, and a line for each mismatch.
    """
    lines = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    by_claim: dict[str, list[dict]] = {}
    for line in lines:
        if line["on"] == on:
            by_claim.setdefault(line["claim"], []).append(line)
    compared = 0
    mismatches = []
    for rows in by_claim.values():
        found = [supports_of(records, row["comparison"]) for row in rows]
        if None in found:
            continue
        for row, comparison, p in zip(rows, found, correct(found), strict=True):
            compared += 1
            words = mismatch(row, comparison, p)
            if words:
                mismatches.append(f"{row}: {words}")
    return compared, mismatches


def mismatch(row, comparison, p):
    """Return how a row differs from a comparison; empty if it does not."""
    supports, by_signs, _ = comparison
    mean = math.nan
    if supports:
        mean = float(np.mean(list(supports.values())))
    if int(row["worlds"]) != len(supports):
        return f"{len(supports)} worlds"
    if not np.isclose(float(row["support"]), mean, rtol=1e-5, equal_nan=True):
        return f"a mean of {mean}"
    if (row["decided by"] == "signs") != by_signs:
        return f"signs: {by_signs}"
    if not np.isclose(float(row["corrected p"]), p, rtol=1e-3, atol=1e-12):
        return f"p of {p}"

    direction = mean
    if by_signs:
        direction = np.sign(list(supports.values())).sum()
    verdict = "cannot be told"
    if p < 0.05:
        verdict = "holds" if direction > 0 else "fails"
    if supports and verdict != row["verdict"]:
        return verdict
    return ""


def correct(found):
    """Return p-values corrected by Holm's method; equal comparisons count once."""
    different = {}
    keys = []
    for supports, by_signs, noise in found:
        if noise is not None and not noise[1]:
            noise = (None, 0)  # An unknown noise equals itself, which nan does not.
        key = (tuple(sorted(supports.items())), by_signs, noise)
        keys.append(key)
        if supports:
            different[key] = p_value(supports, by_signs, noise)
    in_order = sorted(different, key=different.get)
    corrected = {}
    highest = 0.0
    for place, key in enumerate(in_order):
        highest = max(highest, min(1.0, different[key] * (len(in_order) - place)))
        corrected[key] = highest
    return [corrected.get(key, 1.0) for key in keys]
