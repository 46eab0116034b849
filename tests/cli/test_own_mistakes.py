"""Mistakes in parts of one's own that show only while they play: one line and exit code 2."""

from pathlib import Path

import pytest

SOURCE = """
from itertools import repeat

import numpy as np

from fedcohort import BaseSelector
from fedcohort.aggregation.base import Rule
from fedcohort.selection.protocol import Cohort
from fedcohort.world.base import World


class First(BaseSelector):
    extra = 0
    offset = 0
    inclusion_of_all = 1.0

    def choose(self, round, size, present):
        clients = np.arange(size + self.extra) + self.offset
        clients = np.broadcast_to(clients, (*self.batch, clients.size))
        return clients, np.full(clients.shape, self.inclusion_of_all)


class Many(First):
    extra = 1


class Far(First):
    offset = 100


class Never(First):
    inclusion_of_all = 0.0


class Flat(First):
    def choose(self, round, size, present):
        return np.arange(size), np.ones(size)


class Bare(BaseSelector):
    pass


class Plain:
    "A selector that derives from nothing."

    def __init__(self, federation):
        self.num_clients = federation.num_clients
        self.cohort_size = federation.cohort_size
        self.runs = len(federation.rng)

    def select(self, round, available=None):
        clients = np.tile([0, 1, 50], (self.runs, 1))
        return Cohort(round, clients, np.ones(clients.shape))

    def update(self, outcome):
        pass

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class Unsure(Rule):
    def weigh(self, arrivals):
        return arrivals.shares * np.nan


class Single(Rule):
    def weigh(self, arrivals):
        return np.ones(arrivals.shares.shape[-1])


class Empty(Rule):
    pass


def rows(conditions, kind, columns=0):
    return np.ones((len(conditions.seeds), conditions.num_clients + columns), dtype=kind)


def short(conditions):
    three = [rows(conditions, bool)] * 3
    return World(iter(three), np.ones(conditions.num_clients))


def shortly_known(conditions):
    two = iter([rows(conditions, bool)] * 2)
    return World(repeat(rows(conditions, bool)), np.ones(conditions.num_clients), available=two)


def narrow(conditions):
    return World(repeat(rows(conditions, bool, -1)), np.ones(conditions.num_clients))


def timed(conditions):
    every = repeat(rows(conditions, float))
    return World(every, np.ones(conditions.num_clients), has_seconds=True)


def secretly_timed(conditions):
    return World(repeat(rows(conditions, float)), np.ones(conditions.num_clients))
"""
SMALL = ("--clients=8", "--cohort=3", "--seeds=2", "--rounds=5", "--out=run")
TRAINED = (
    "--dataset=digits",
    "--partitions=iid",
    "--aggregations=paper",
    "--mode=one-by-one",
    *SMALL,
)
OFFLINE = ("--world=markov", "--knows-offline")
SHARED = [
    (("--selectors=mine.py:Many",), "selector Many must choose 3 clients, got 4"),
    (("--selectors=mine.py:Far",), "selector Far must choose clients from 0 to 7, got 102"),
    (("--selectors=mine.py:Never",), "inclusion of selector Never must be above 0, got 0.0"),
    (("--selectors=mine.py:Flat",), "selector Flat must choose clients of shape (2, 3), got (3,)"),
    (("--selectors=mine.py:Bare",), "Bare of mine.py cannot be used: Bare must implement choose"),
    (("--selectors=mine.py:Plain",), "selector Plain must choose clients from 0 to 7, got 50"),
    (
        ("--selectors=mine.py:First", *OFFLINE),
        "selector First must choose clients that are available, got client ",
    ),
    (("--world=mine.py:short",), "world 'mine.py:short' must have 5 rounds, got 3"),
    (
        ("--world=mine.py:shortly_known", "--knows-offline"),
        "available of the world 'mine.py:shortly_known' must have 5 rounds, got 2",
    ),
    (
        ("--world=mine.py:narrow",),
        "world 'mine.py:narrow' must have rows of 8 clients, got a row of shape (2, 7)",
    ),
]


@pytest.fixture(autouse=True)
def source():
    Path("mine.py").write_text(SOURCE)


def refused(result):
    """Return the message of a command that was refused in one line."""
    code, _, err = result
    assert code == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        *SHARED,
        (
            ("--world=mine.py:timed",),
            "world 'mine.py:timed' must say who answers (bool) in a simulation, which has no "
            "deadline, got seconds; `compare` has a deadline",
        ),
        (
            ("--world=mine.py:secretly_timed",),
            "world 'mine.py:secretly_timed' must have rows of bools unless it sets has_seconds",
        ),
    ],
)
def test_a_simulation_names_the_part_the_bound_and_the_value(fedcohort, flags, words):
    assert words in refused(fedcohort("simulate", "--selectors=random", *SMALL, *flags))
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        *SHARED,
        (
            ("--aggregations=mine.py:Unsure",),
            "weights of the aggregation 'mine.py:Unsure' must be finite for updates that count",
        ),
        (
            ("--aggregations=mine.py:Single",),
            "weights of the aggregation 'mine.py:Single' must have shape (2, 3), got (3,)",
        ),
        (
            ("--aggregations=mine.py:Empty",),
            "Empty of mine.py cannot be used: Empty must implement weigh",
        ),
    ],
)
def test_a_comparison_names_the_part_the_bound_and_the_value(fedcohort, flags, words):
    assert words in refused(fedcohort("compare", "--selectors=random", *TRAINED, *flags))


def test_a_finished_simulation_outlives_a_mistake(fedcohort):
    flags = ("--selectors=mine.py:First", *SMALL)
    assert fedcohort("simulate", *flags)[0] == 0
    before = {path: path.read_bytes() for path in Path("run").iterdir() if path.is_file()}
    broken = ("--selectors=mine.py:Far", *SMALL, "--overwrite")
    refused(fedcohort("simulate", *broken))
    after = {path: path.read_bytes() for path in Path("run").iterdir() if path.is_file()}
    assert after == before


def test_a_comparison_keeps_the_rounds_before_the_end_of_its_world(fedcohort):
    flags = ("--selectors=random", *TRAINED, "--world=mine.py:short", "--checkpoint-every=1")
    refused(fedcohort("compare", *flags))
    assert "got run with 3 of 5 rounds" in refused(fedcohort("compare", *flags))
