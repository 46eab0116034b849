import os
from dataclasses import replace
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from fedcohort.lab import folder as run_folder
from fedcohort.lab import simulation
from fedcohort.lab.config import SimulationConfig
from fedcohort.lab.config_checks import ONLY_WITH_TRAINING
from fedcohort.lab.recorder import AllocationRecorder
from fedcohort.lab.simulation_result import SimulationResult, collect
from fedcohort.lab.summary import simulation_rows
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.protocol import Cohort
from fedcohort.selection.registry import SELECTORS
from fedcohort.selection.sampling import SAMPLERS
from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.classes import class_rates
from fedcohort.world.recorded import replay

UNTRAINED = tuple(
    name
    for name, scheme in SELECTORS.items()
    if not any(getattr(scheme.selector, capability) for capability in ONLY_WITH_TRAINING)
)
TINY = SimulationConfig(UNTRAINED, clients=9, cohort=3, rounds=30, seeds=3, first_seed=4)


def same(a, b):
    return all(np.array_equal(getattr(a, field), getattr(b, field)) for field in vars(a))


def part_of(result, runs):
    """Return the result of some of the runs."""
    fields = {}
    for name, value in vars(result).items():
        fields[name] = None if value is None else value[runs]
    return SimulationResult(**fields)


class Scripted:
    """A selector that asks the same clients whatever happens, and remembers what it was told."""

    def __init__(self, *cohorts, num_clients):
        self.cohorts, self.num_clients, self.told = cohorts, num_clients, []
        self.cohort_size = num_clients

    def select(self, round, available=None):
        clients = np.array(self.cohorts[round])
        return Cohort(round, clients, np.ones(clients.shape))

    def update(self, outcome):
        self.told.append(outcome)


@pytest.fixture(scope="module")
def tiny():
    """Return the results of all selectors that need no training."""
    return simulation.simulate(TINY)


def test_sums_of_a_scripted_run_are_the_ones_counted_by_hand():
    # two runs, three clients, two rounds; run 0 asks 0 1 and then 1 2, run 1 asks 0 2 twice
    selector = Scripted([[0, 1], [0, 2]], [[1, 2], [0, 2]], num_clients=3)
    world = np.array([[[1, 0, 1], [0, 1, 0]], [[0, 1, 1], [1, 1, 1]]], dtype=bool)
    played = collect(selector, replay(world), np.array([0.5, 0.25, 1.0]), rounds=2, runs=2)
    assert played.successes.tolist() == [[1, 2], [0, 2]]
    assert played.answering.tolist() == [[2, 2], [1, 3]]
    assert played.expected.tolist() == [[0.75, 1.25], [1.5, 1.5]]
    assert played.counts.tolist() == [[1, 2, 1], [2, 0, 2]]
    assert [outcome.success.tolist() for outcome in selector.told] == [
        [[1, 0], [0, 0]],
        [[1, 1], [1, 1]],
    ]


def test_a_world_without_rates_is_its_own_expectation():
    selector = Scripted([[0, 1]], [[0, 1]], num_clients=2)
    played = collect(
        selector, replay(np.array([[[1, 0]], [[1, 1]]], dtype=bool)), None, rounds=2, runs=1
    )
    assert played.expected.tolist() == played.successes.tolist() == [[1, 2]]


@pytest.mark.parametrize("name", UNTRAINED)
def test_seeds_played_together_give_what_each_gives_alone(name, tiny):
    for row, seed in enumerate(TINY.seed_list):
        alone = simulation.simulate(replace(TINY, selectors=(name,), seeds=1, first_seed=seed))[
            name
        ]
        assert same(alone, part_of(tiny[name], slice(row, row + 1)))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_sampler_gives_the_same_results_together_and_alone(sampler):
    setting = replace(TINY, selectors=("e3cs-0.5",), sampler=sampler)
    together = simulation.simulate(setting)["e3cs-0.5"]
    last = simulation.simulate(replace(setting, seeds=1, first_seed=6))["e3cs-0.5"]
    assert same(last, part_of(together, slice(2, None)))


def test_all_selectors_meet_the_same_world_and_another_seed_is_another_world(tiny):
    for name in UNTRAINED:
        np.testing.assert_array_equal(tiny[name].answering, tiny["random"].answering)
    rates = class_rates(TINY.clients, TINY.rates)
    rows = [
        row.sum(axis=-1)
        for row, _ in zip(bernoulli(rates, TINY.seed_list), range(TINY.rounds), strict=False)
    ]
    np.testing.assert_array_equal(tiny["random"].answering, np.stack(rows, axis=-1))
    assert not np.array_equal(tiny["random"].answering[0], tiny["random"].answering[1])


def test_a_selector_plays_the_same_whoever_else_is_compared(tiny):
    assert same(
        simulation.simulate(replace(TINY, selectors=("e3cs-0", "fedcs")))["fedcs"], tiny["fedcs"]
    )


def test_every_round_asks_a_whole_cohort_and_no_more_arrive_than_would_answer(tiny):
    for name, played in tiny.items():
        asked = 4 if name == "over-selection" else TINY.cohort  # 1.3 * 3, rounded up
        assert (played.counts.sum(axis=-1) == TINY.rounds * asked).all()
        assert (played.counts <= TINY.rounds).all()
        assert (played.successes <= np.minimum(asked, played.answering)).all()


def test_the_success_ratio_counts_the_clients_that_were_asked(tiny):
    rows = {row["selector"]: row for row in simulation_rows(TINY, tiny)}
    for name, played in tiny.items():
        ratio = played.successes.sum() / played.counts.sum()
        assert rows[name]["success ratio"] == pytest.approx(ratio, rel=1e-12)


def test_fedcs_expects_the_best_rates_and_random_the_mean(tiny):
    np.testing.assert_allclose(
        tiny["fedcs"].expected, 2 * 0.9 + 0.6
    )  # nine clients: three at 0.1, two at each other rate
    many = simulation.simulate(
        SimulationConfig(("random",), clients=8, cohort=2, rounds=500, seeds=4)
    )["random"]
    per_round = many.expected.mean(axis=-1)
    error = 5 * sqrt(
        2 * np.var([0.1, 0.3, 0.6, 0.9]) / 2000
    )  # at most: draws without replacement vary less
    assert abs(per_round.mean() - 2 * 0.475) < error


def test_the_summary_says_what_the_arrays_say(tiny):
    rows = {row["selector"]: row for row in simulation_rows(TINY, tiny)}
    assert list(rows) == list(UNTRAINED)
    played, row = tiny["fedcs"], rows["fedcs"]
    cep = [sum(run) for run in played.successes.tolist()]
    assert row["CEP"] == pytest.approx(sum(cep) / 3)
    assert row["success ratio"] == pytest.approx(sum(cep) / (3 * 30 * 3))
    assert row["CEP sd"] == pytest.approx(sqrt(sum((c - sum(cep) / 3) ** 2 for c in cep) / 2))
    assert (
        row["asked, by class"] == "0/0/15/30"
    )  # nine clients: one of the two at 0.6 is among the best three


def test_fairness_is_the_mean_over_seeds_and_not_that_of_their_sum():
    counts = np.array([[2, 0], [0, 2]])  # Jain's index of each seed is 1/2, of the sum 1
    empty = np.zeros((2, 2))
    result = SimulationResult(empty, empty, empty, counts)
    config = SimulationConfig(("random",), clients=2, cohort=1, rounds=2, seeds=2, rates=(0.5, 0.5))
    assert simulation_rows(config, {"random": result})[0]["Jain"] == 0.5


def test_one_seed_has_no_spread(tiny):
    one = replace(TINY, selectors=("random",), seeds=1)
    assert np.isnan(simulation_rows(one, simulation.simulate(one))[0]["CEP sd"])


def test_arrays_are_named_by_selector_and_field(tiny, tmp_path):
    simulation.load_or_simulate("simulate", TINY, tmp_path, run=lambda config, on_progress: tiny)
    stored = run_folder.load_simulation_results(tmp_path)
    names = {
        f"{n}/{f}" for n in UNTRAINED for f in ("successes", "answering", "expected", "counts")
    }
    assert stored.keys() == names | {"over-selection/asked"}  # the one that asks more than k
    assert np.array_equal(stored["e3cs-0.5/counts"], tiny["e3cs-0.5"].counts)


def test_progress_is_told_in_order_and_reaches_the_end():
    told = []
    setting = replace(TINY, selectors=("random", "fedcs"), rounds=120)
    simulation.simulate(setting, lambda *news: told.append(news))
    assert [part for part, done, total in told if done == total == 120] == ["random", "fedcs"]
    assert [done for part, done, _ in told if part == "fedcs"] == sorted(
        {done for part, done, _ in told if part == "fedcs"}
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clients": 3}, "clients must be at least 4, one for each rate, got 3"),
        ({"cohort": 10}, "cohort must be a whole number between 1 and 9, got 10"),
        ({"rounds": 0}, "rounds must be a whole number at least 1, got 0"),
        ({"seeds": -1}, "seeds must be a whole number at least 1, got -1"),
        ({"first_seed": -1}, "first_seed must be a whole number at least 0, got -1"),
        ({"rates": (0.5, -0.1)}, "rates must be between 0.0 and 1.0, got -0.1"),
        ({"sampler": "pivotall"}, "got 'pivotall'; did you mean 'pivotal'"),
        ({"selectors": ("e3cs-1",)}, "got 'e3cs-1'; did you mean 'e3cs-"),
        ({"selectors": ("rpow-d",)}, "got 'rpow-d'"),
        ({"selectors": ()}, "selectors .* at least one"),
        (
            {"selectors": ("random", "random")},
            "selectors must be a list of at least one, each once, got .*random.*random",
        ),
        ({"seeds": 10**20}, "seeds must be a whole number between 1 and 2147483647, got 1000"),
        ({"rates": ()}, "rates .* at least one"),
        ({"eta": -1.0}, "eta must .*got -1"),
        ({"eta": "fast"}, "eta must .*got 'fast'"),
    ],
)
def test_a_wrong_setting_is_refused_before_anything_runs(change, message):
    with pytest.raises(ValueError, match=message):
        replace(TINY, **change)


def test_selectors_learn_at_the_rate_of_the_settings():
    config = replace(TINY, selectors=("e3cs-0",), eta=3.0)
    selector = E3CS(TINY.clients, TINY.cohort, rng=TINY.seed_list, eta=3.0)
    rates = class_rates(TINY.clients, TINY.rates)
    world = bernoulli(rates, TINY.seed_list)
    expected = collect(selector, world, rates, TINY.rounds, TINY.seeds)
    assert same(simulation.simulate(config)["e3cs-0"], expected)
    usual = simulation.simulate(replace(config, eta=0.5))["e3cs-0"]
    assert not np.array_equal(usual.counts, expected.counts)


def test_clients_answer_at_the_rates_of_the_settings():
    config = replace(TINY, selectors=("random",), rates=(0.0, 1.0))
    played = simulation.simulate(config)["random"]
    assert (played.answering == TINY.clients // 2).all()  # five of nine never answer, four always


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_folder_in_use_by_another_process_is_refused_before_anything_is_played(
    tmp_path, overwrite
):
    def never(config, on_progress):
        raise AssertionError("played")

    with (
        run_folder.locked(tmp_path),
        pytest.raises(ValueError, match="out must not be in use by another process"),
    ):
        simulation.load_or_simulate("simulate", TINY, tmp_path, run=never, overwrite=overwrite)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_locked_while_a_simulation_plays_and_free_afterwards(tmp_path):
    folder = tmp_path / "run"

    def play(config, on_progress):
        with (
            pytest.raises(ValueError, match="out must not be in use by another process"),
            run_folder.locked(folder),
        ):
            pass
        return simulation.simulate(config)

    config = replace(TINY, selectors=("random",))
    simulation.load_or_simulate("simulate", config, folder, run=play)
    with run_folder.locked(folder):
        pass
    assert run_folder.has_simulation(folder)


def test_a_simulation_that_cannot_be_played_leaves_no_folder(tmp_path):
    def refuse(config, on_progress):
        raise ValueError("rounds must fit")

    with pytest.raises(ValueError, match="rounds must fit"):
        simulation.load_or_simulate("simulate", TINY, tmp_path / "run", run=refuse)
    assert not (tmp_path / "run").exists()


def test_a_simulation_of_an_earlier_version_is_read_and_keeps_its_version(tmp_path, monkeypatch):
    config = replace(TINY, selectors=("random",))
    first = simulation.load_or_simulate("simulate", config, tmp_path)
    monkeypatch.setattr(simulation, "__version__", "999.0")
    again = simulation.load_or_simulate("simulate", config, tmp_path)
    assert again.settings["version"] == first.settings["version"] != "999.0"


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("last", ["environment.json", "0000000.npz", "results.npz"])
def test_a_simulation_killed_before_all_is_written_is_played_again(
    tmp_path, monkeypatch, last, overwrite
):
    config = replace(TINY, selectors=("e3cs-0.5",))

    def run():
        recorder = AllocationRecorder(config.rounds)
        return simulation.load_or_simulate(
            "simulate", config, tmp_path, recorder=recorder, overwrite=overwrite
        )

    if overwrite:
        run()
    put_in_place = os.replace

    def kill_after(source, target):
        put_in_place(source, target)
        if Path(target).name == last:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", kill_after)
        with pytest.raises(KeyboardInterrupt):
            run()
    assert not run_folder.has_simulation(tmp_path)
    again = run()
    assert again.environment
    assert list(again.allocations) == ["e3cs-0.5"]
