"""Compute the table of the regret anew, from the margins of the seeds and from formulas.

This file shares no code with fedcohort. The record holds by how much each seed of each case stayed
below the bound of Theorem 1. The bounds and their errata E6 and E13 are in DEVIATIONS.md.
"""

import math
from pathlib import Path

import numpy as np
from recompute_selection import check_rows, read_table, written

SWITCH_ROUNDS = 10_000  # of two clients, one answers in the first quarter and one afterwards


def check_regret(report: Path, exported: dict) -> tuple[int, list[str]]:
    """Compare the table of the regret with the margins and formulas; see `check_rows`."""
    return check_rows(read_table(report, "Summary"), regret_rows(exported))


def check_margins(exported: dict, schemes: dict) -> tuple[int, list[str]]:
    """Compare the margins with what the clients that were asked can earn.

    A regret is what the best fixed allocation earns less what the clients that were asked do.
    The latter are whole tenths, as the rates are. Where the game is that of Figure 3, they come
    out of its counts.

    Args:
        exported: The record of the regret.
        schemes: The schemes of Figure 3.

    Returns:
        The number of margins that were compared, and a line for each mismatch.
    """
    compared = 0
    mismatches = []
    settings = exported["settings"]
    for case in regret_cases(settings):
        earned = case.best_fixed - (case.bound - np.array(exported["room"][case.label]))
        whole = np.isclose(10 * earned, np.round(10 * earned), rtol=0, atol=1e-6)
        compared += earned.size
        for seed in np.flatnonzero(~whole):
            mismatches.append(f"{case.label}, seed {seed}: the clients earn {earned[seed]}")

        name, variant = case.name.split(", ")
        if variant == "successive" and case.eta == settings["eta"]:
            counted = schemes[name].counts @ case.rates
            compared += counted.size
            for seed in np.flatnonzero(~np.isclose(counted, earned[: counted.size])):
                mismatches.append(f"{case.label}, seed {seed}: by counts they earn {counted[seed]}")
    return compared, mismatches


def regret_rows(exported: dict) -> list[dict]:
    """Return the table of the regret."""
    rows = []
    for case in regret_cases(exported["settings"]):
        rows.append(regret_row(case, np.array(exported["room"][case.label])))
    return rows


class Case:
    """A game of E3CS, which the bound of Theorem 1 is about.

    Args:
        name: The scheme, or "switch", and what is special about the case.
        fractions: The share of each round's cohort that is given to all alike [T].
        sizes: The numbers of clients and of those asked in a round.
        rates: How often each client answers [K]. As many answer most often as can be chosen.
        eta: Learning rate; the one at which the bound is lowest if it is not given.
    """

    def __init__(self, name, fractions, sizes, rates, eta=None):
        self.name = name
        self.clients, self.cohort = sizes
        self.spare = self.cohort * (1 - fractions)  # R_t
        self.floors = self.cohort * fractions / self.clients  # sigma_t
        self.rates = np.array(rates)
        self.eta = eta
        if eta is None:
            self.eta = math.sqrt(self.clients * math.log(self.clients) / self.spare.sum())

    @property
    def label(self):
        """What the margins of the case are called."""
        return f"{self.name}, eta {self.eta:.4f}"

    @property
    def best_fixed(self):
        """What the best fixed allocation earns: all that is spare goes to the best clients."""
        return self.spare.sum() * self.rates.max() + self.floors.sum() * self.rates.sum()

    @property
    def is_robust(self):
        """Whether E3CS learns from losses, with the cap stored."""
        return self.name.endswith("robust")

    @property
    def is_covered(self):
        """Whether a corrected theorem applies."""
        if self.is_robust:
            return bool(np.ptp(self.floors) == 0)
        least = self.eta * self.spare / self.clients  # E6: below it an estimate is too large
        return "successive" not in self.name and bool(np.all(self.floors >= least * (1 - 1e-9)))

    @property
    def bound(self):
        """The bound of Theorem 1."""
        return self.eta * self.spare.sum() + self.clients * math.log(self.clients) / self.eta

    @property
    def corrected_bound(self):
        """The bound with a smaller logarithm, and half the first term if E3CS is robust."""
        first = self.eta * self.spare.sum()
        if self.is_robust:
            first /= 2
        rho = max(1.0, (self.spare / (1 - self.floors)).max())  # E13: no share exceeds 1 / rho
        return first + self.clients * math.log(self.clients / rho) / self.eta

    def clairvoyant(self, regret, seeds):
        """Return the least and the most that the mean regret against a clairvoyant may be.

        A clairvoyant loses no spare choice. The best fixed allocation loses those that the best
        client does not answer. Answers are random, except in the switch; the variance of an answer
        is at most a quarter. Five standard errors, and half of the last digit, are allowed.
        """
        middle = regret + (1 - self.rates.max()) * self.spare.sum()
        width = 0.5
        if not self.name.startswith("switch"):
            variances = (self.cohort + self.clients * self.floors**2) / 4
            width += 5 * math.sqrt(variances.sum() / seeds)
        return middle - width, middle + width


def regret_cases(settings: dict) -> list[Case]:
    """Return the cases in the order of the table."""
    sizes = (settings["num_clients"], settings["cohort_size"])
    rates = np.repeat(settings["rates"], sizes[0] // len(settings["rates"]))
    cases = []
    for name in settings["selectors"]:
        fractions = quotas(name, settings["rounds"])
        for eta in (None, settings["eta"]):
            for variant in ("exact", "successive", "robust"):
                cases.append(Case(f"{name}, {variant}", fractions, sizes, rates, eta))

    none = np.zeros(SWITCH_ROUNDS)
    rates = (0.25, 0.75)
    no_floor = Case("switch, no floor", none, (2, 1), rates)
    eta = no_floor.eta
    fractions = np.full(SWITCH_ROUNDS, eta / (1 + eta))
    floor = Case("switch, floor of the proof", fractions, (2, 1), rates, eta)
    return [*cases, no_floor, floor, Case("switch, robust", none, (2, 1), rates)]


def quotas(name, rounds):
    """Return the share of each round's cohort that a scheme gives to all alike [T]."""
    if name == "e3cs-inc":
        return (np.arange(rounds) >= rounds // 4).astype(float)
    return np.full(rounds, float(name.removeprefix("e3cs-")))


def regret_row(case: Case, margins: np.ndarray) -> dict:
    """Return a row of the table, given the bound less the regret of each seed."""
    regrets = case.bound - margins
    corrected = "-"
    if case.is_covered:
        corrected = written(case.corrected_bound)
    return {
        "case": case.name,
        "eta": written(case.eta),
        "regret, best fixed": written(regrets.mean()),
        "standard error": written(regrets.std(ddof=1) / math.sqrt(regrets.size)),
        "regret, clairvoyant": case.clairvoyant(regrets.mean(), regrets.size),
        "paper's bound": written(case.bound),
        "corrected bound": corrected,
        "corrected theorem applies": ("no", "yes")[case.is_covered],
        "within paper's bound": ("no", "yes")[bool(regrets.mean() <= case.bound)],
    }
