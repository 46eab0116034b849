"""Worlds with options, and servers that know who is offline, in simulations and comparisons."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from fedcohort.data import Dataset, label_counts
from fedcohort.lab import folder as run_folder
from fedcohort.lab.archive import results_of
from fedcohort.lab.comparison import load_comparison
from fedcohort.lab.config import ComparisonConfig, SimulationConfig, has_classes, open_world
from fedcohort.lab.owners import deal_samples
from fedcohort.lab.progress import follow
from fedcohort.lab.recorder import AllocationRecorder
from fedcohort.lab.result import identity
from fedcohort.lab.simulation import load_or_simulate, simulate
from fedcohort.lab.summary import comparison_rows, count_asked, simulation_rows
from fedcohort.lab.tracking import compute_scalars
from fedcohort.lab.trial import Trial
from fedcohort.reports.pages.comparison import findings
from fedcohort.reports.pages.simulation import findings as simulation_findings
from fedcohort.rng import stream
from fedcohort.selection.protocol import NOBODY
from fedcohort.world.labels import label_rates
from fedcohort.world.options import MissingData

CLIENTS = 8
DATA = Dataset(
    "tiny",
    x=np.random.default_rng(0).normal(size=(160, 3)).astype(np.float32),
    y=np.arange(160) % 4,
    num_classes=4,
)
OFTEN_EMPTY = {"world": "markov", "rates": (0.1, 0.4), "world_options": ("cycle=10",)}
KNOWN = {**OFTEN_EMPTY, "knows_offline": True}


def make_config(**changed):
    settings = {
        "selectors": ("random", "fedcs", "e3cs-0.5", "pow-d"),
        "partitions": ("iid", "primary-label"),
        "aggregations": ("paper",),
        "seeds": 2,
        "first_seed": 5,
        "clients": CLIENTS,
        "cohort": 3,
        "rounds": 12,
        "epochs": (1, 2),
        "mode": "one-by-one",
        "checkpoint_every": 5,
    }
    return ComparisonConfig(**(settings | changed))


def play(folder, **changed):
    """Play a comparison and return what its folder holds."""
    trial = Trial(make_config(**changed), DATA, folder)
    run_folder.write_settings(folder, trial.config.as_dict())
    trial.run()
    return load_comparison(folder)


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """Return a comparison whose server knows who is offline."""
    return play(tmp_path_factory.mktemp("known"), **KNOWN)


# --- Settings ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ComparisonConfig, SimulationConfig])
def test_options_are_settings_that_come_back_and_decide_a_run(kind):
    config = kind(world="markov", world_options=("off=20.0", "failure=.1"), knows_offline=True)
    assert config.world_options == ("failure=0.1", "off=20")
    assert config == kind(
        world="markov", world_options=("failure=0.10", "off=2e1"), knows_offline=True
    )
    assert kind.from_dict(config.as_dict()) == config


def test_without_options_settings_and_identity_are_as_they_were():
    for kind in (ComparisonConfig, SimulationConfig):
        assert {"world_options", "knows_offline"} & set(kind().as_dict()) == set()
    plain = make_config(world="markov")
    assert identity(plain) != identity(replace(plain, knows_offline=True))
    assert identity(plain) != identity(replace(plain, world_options=("cycle=40",)))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"world_options": ("cycle",)}, "world_options must be name=number each, got 'cycle'"),
        ({"world_options": (3,)}, "world_options must be name=number each, got 3"),
        ({"world_options": "on=3"}, "world_options must be a list, got 'on=3'"),
        ({"knows_offline": 1}, "knows_offline must be true or false, got 1"),
        ({"world": "markov", "world_file": "a.csv"}, "world_file must not be given for .*'markov'"),
    ],
)
def test_settings_of_the_wrong_kind_are_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        make_config(**changed)


def test_a_world_by_labels_has_no_classes_of_clients():
    assert has_classes(make_config(world="markov"))
    assert not has_classes(make_config(world="labels"))
    assert make_config(world="labels", clients=3, cohort=1).clients == 3


# --- Conditions of a comparison ------------------------------------------------------------


def test_every_run_meets_the_failures_of_its_own_labels(tmp_path):
    trial = Trial(make_config(world="labels"), DATA, tmp_path / "run")
    world = trial.open_world()
    rows = np.stack(list(islice(world.seconds, 40)))
    for position, key in enumerate(trial.keys):
        train = deal_samples(trial.config, DATA, key.partition, key.seed).train
        rates = label_rates(label_counts(DATA.y, train, 4), 0.1, 0.9)
        np.testing.assert_array_equal(trial.success_rates[position], rates)
        draws = stream(key.seed, "world").random((40, CLIENTS))
        np.testing.assert_array_equal(np.isfinite(rows[:, position]), draws < rates)
    fedcs = trial.selector.selectors[1]
    mine = [row for row, key in enumerate(trial.keys) if key.selector == "fedcs"]
    np.testing.assert_array_equal(fedcs.success_rates, trial.success_rates[mine])


def test_a_run_of_many_meets_the_world_that_it_meets_alone(tmp_path):
    for world in ("labels", "groups", "swap"):
        together = Trial(make_config(world=world), DATA, tmp_path / "run")
        rows = np.stack(list(islice(together.open_world().seconds, 12)))
        for position, key in enumerate(together.keys):
            config = make_config(
                world=world,
                selectors=(key.selector,),
                partitions=(key.partition,),
                seeds=1,
                first_seed=key.seed,
            )
            alone = Trial(config, DATA, tmp_path / "run").open_world().seconds
            np.testing.assert_array_equal(
                rows[:, position], np.stack(list(islice(alone, 12)))[:, 0]
            )


def test_a_simulation_deals_no_samples_and_says_so():
    config = SimulationConfig(("random",), clients=8, cohort=3, rounds=5, seeds=2, world="labels")
    with pytest.raises(MissingData, match=r"world 'labels' must know the labels .* `compare`"):
        simulate(config)


# --- A server that knows who is offline ----------------------------------------------------


def online_rows(comparison):
    """Return who was online [T, runs, K]."""
    config = comparison.config
    seeds = [key.seed for key in Trial(config, DATA, comparison.folder).keys]
    return np.stack(list(islice(open_world(config, seeds).available, config.rounds)))


def test_only_online_clients_are_asked_and_all_of_them_if_they_are_few(known):
    clients = known.records["clients"]
    online = online_rows(known)
    assert clients.shape == (12, 16, 3)
    for round, run in np.ndindex(clients.shape[:2]):
        asked = clients[round, run][clients[round, run] != NOBODY]
        present = np.flatnonzero(online[round, run])
        assert len(asked) == min(3, len(present))
        assert set(asked) <= set(present)
    sizes = (clients != NOBODY).sum(axis=-1)
    assert set(np.unique(sizes)) == {0, 1, 2, 3}  # every case occurs


def test_whoever_is_online_arrives_and_an_empty_round_takes_the_deadline(known):
    records = known.records
    is_asked = records["clients"] != NOBODY
    np.testing.assert_array_equal(records["arrived"], is_asked)
    is_empty = ~is_asked.any(axis=-1)
    assert is_empty.any()
    assert (records["seconds"][is_empty] == known.config.seconds_until_deadline).all()
    assert (records["wasted_seconds"] == 0).all()
    assert (records["wasted_bytes"] == 0).all()


def test_a_client_that_fails_after_it_was_asked_wastes_its_bytes(tmp_path):
    options = ("cycle=10", "failure=1")
    comparison = play(tmp_path / "run", **{**KNOWN, "world_options": options})
    records = comparison.records
    asked = (records["clients"] != NOBODY).sum(axis=-1)
    model_bytes = Trial(comparison.config, DATA, tmp_path / "run").engine.model_bytes
    assert not records["arrived"].any()
    np.testing.assert_array_equal(records["wasted_bytes"], asked * model_bytes)
    for row in comparison_rows(comparison.config, records):
        assert row["success"] == 0


def test_a_run_is_the_same_alone_and_among_others(known, tmp_path):
    alone = play(
        tmp_path / "alone",
        **KNOWN,
        selectors=("e3cs-0.5",),
        partitions=("primary-label",),
        seeds=1,
        first_seed=6,
    )
    (row,) = [
        row
        for row, key in enumerate(Trial(known.config, DATA, known.folder).keys)
        if (key.selector, key.partition, key.seed) == ("e3cs-0.5", "primary-label", 6)
    ]
    for name in ("clients", "arrived", "valid", "seconds", "wasted_seconds", "wasted_bytes"):
        np.testing.assert_array_equal(known.records[name][:, row], alone.records[name][:, 0])


@pytest.mark.parametrize("stop", [1, 5, 7])
def test_a_comparison_that_is_resumed_equals_one_that_was_not(known, tmp_path, stop):
    folder = tmp_path / "run"
    trial = Trial(known.config, DATA, folder)
    rounds = iter(range(1, 100))
    run_folder.write_settings(folder, trial.config.as_dict())
    trial.run(should_stop=lambda: next(rounds) == stop)
    resumed = Trial(known.config, DATA, folder)
    resumed.restore()
    assert resumed.done == stop
    resumed.run()
    records = load_comparison(folder).records
    assert records.keys() == known.records.keys()
    for name, values in known.records.items():
        np.testing.assert_array_equal(records[name], values)
    for name, allocations in known.allocations.items():
        again = load_comparison(folder).allocations[name]
        np.testing.assert_array_equal(again.inclusion, allocations.inclusion)


# --- Everything that reads who was asked ---------------------------------------------------


def test_counts_and_success_leave_nobody_out(known):
    records = known.records
    clients = records["clients"]
    counts = count_asked(clients, CLIENTS)
    for run, client in np.ndindex(counts.shape):
        assert counts[run, client] == (clients[:, run] == client).sum()
    for row in comparison_rows(known.config, records):
        assert row["success"] == 1.0  # whoever is online answers
    for position, result in enumerate(results_of(known)):
        np.testing.assert_array_equal(result.counts, counts[position])
    scalars = compute_scalars({name: value[:, :2] for name, value in records.items()}, first=0)
    assert {value for _, value in scalars["success_ratio"]} == {1.0}


def test_the_page_and_the_progress_leave_nobody_out(known):
    page = findings(known)
    for schemes in page.kinds.values():
        for scheme in schemes.values():
            np.testing.assert_array_equal(scheme.success, [1.0, 1.0])
            assert scheme.asked.min() == 0
    assert "world markov, cycle=10" in page.lead[0]
    snapshot = follow(known.folder).snapshot()
    for progress in snapshot.selectors:
        assert progress.success == 1.0
        assert str(NOBODY) not in [client.name for client in progress.asked]


def test_recorded_probabilities_are_those_among_the_online(known, tmp_path):
    allocations = known.allocations["e3cs-0.5"]
    assert allocations.rounds.tolist() == list(range(12))
    first = [key.selector for key in Trial(known.config, DATA, known.folder).keys].index("e3cs-0.5")
    online = online_rows(known)[:, first]
    assert (allocations.inclusion[~online] == 0).all()
    sizes = np.minimum(online.sum(axis=-1), 3)
    np.testing.assert_allclose(allocations.inclusion.sum(axis=-1), sizes, atol=5e-3)  # float16

    config = SimulationConfig(("e3cs-0.5",), clients=8, cohort=3, rounds=40, seeds=2, **KNOWN)
    recorder = AllocationRecorder(config.rounds)
    simulate(config, recorder=recorder)
    rows = recorder.rows["e3cs-0.5"]
    assert list(rows) == list(range(40))
    present = np.stack(list(islice(open_world(config, [0]).available, 40)))[:, 0]
    inclusion = np.stack([row for row, _ in rows.values()])
    assert (inclusion[~present] == 0).all()
    assert (inclusion[present] > 0).all()


def test_a_simulation_asks_only_who_is_online(tmp_path):
    config = SimulationConfig(
        ("random", "fedcs", "e3cs-0.5"), clients=8, cohort=3, rounds=40, seeds=3, **KNOWN
    )
    simulation = load_or_simulate("simulate", config, tmp_path / "run")
    online = np.stack(list(islice(open_world(config, config.seed_list).available, 40)))
    expected = np.minimum(online.sum(axis=-1), 3).T
    for result in simulation.results.values():
        np.testing.assert_array_equal(result.asked, expected)
        np.testing.assert_array_equal(result.successes, expected)
        np.testing.assert_array_equal(result.counts.sum(axis=-1), expected.sum(axis=-1))
    for row in simulation_rows(config, simulation.results):
        assert row["success ratio"] == 1.0

    stored = load_or_simulate("simulate", config, tmp_path / "run")
    for name, result in stored.results.items():
        np.testing.assert_array_equal(result.asked, simulation.results[name].asked)
    page = simulation_findings(stored)
    for scheme in page.kinds[next(iter(page.kinds))].values():
        np.testing.assert_array_equal(scheme.asked, expected)


def test_simulated_seeds_that_know_who_is_offline_are_the_seeds_alone():
    settings = {"clients": 8, "cohort": 3, "rounds": 40, **KNOWN}
    together = simulate(SimulationConfig(("e3cs-0.5",), seeds=3, **settings))["e3cs-0.5"]
    for seed in range(3):
        config = SimulationConfig(("e3cs-0.5",), seeds=1, first_seed=seed, **settings)
        alone = simulate(config)["e3cs-0.5"]
        for name in ("successes", "answering", "expected", "counts", "asked"):
            np.testing.assert_array_equal(getattr(together, name)[seed], getattr(alone, name)[0])


def test_expected_successes_are_the_rates_of_those_asked():
    config = SimulationConfig(
        ("fedcs",), clients=4, cohort=2, rounds=30, seeds=2, world="groups", rates=(0.5,),
        world_options=("groups=2", "up=0.5", "cycle=4"), knows_offline=True,
    )  # fmt: skip
    result = simulate(config)["fedcs"]
    asked = np.full(result.successes.shape, 2) if result.asked is None else result.asked
    np.testing.assert_allclose(result.expected, asked * 0.25, rtol=1e-15)
