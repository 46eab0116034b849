"""Flower's simulation engine, as real processes.

The same seed gives the same world: in two runs here, and in `fedcohort simulate`.
"""

import numpy as np
import pytest
from deployment import (
    Run,
    assert_all_ended,
    assert_model,
    assert_nothing_left,
    assert_replayed,
    averaged,
    fates,
    open_lab,
)

from fedcohort import Federation, bernoulli, class_rates, make_selector, play
from fedcohort.lab.config import SimulationConfig
from fedcohort.lab.simulation import simulate_selector

pytestmark = pytest.mark.slow
CLIENTS, COHORT, ROUNDS, SEED = 20, 5, 12, 7
ENGINE = f"num-supernodes={CLIENTS} client-resources-num-cpus=1 init-args-num-cpus=2"
PARTITIONS = {str(place): {"number": float(place), "examples": 10} for place in range(CLIENTS)}


@pytest.fixture(scope="module")
def runs(quick, tmp_path_factory):
    """Four finished runs that ran side by side.

    Two have the same seed, one of them without an announced number of clients; one is FedAdam, and
    one is Flower's own FedAvg.
    """
    folder = tmp_path_factory.mktemp("simulation")
    common = {
        "clients": CLIENTS,
        "cohort": COHORT,
        "rounds": ROUNDS,
        "seed": SEED,
        "deadline": 0.0,
        "volatile": True,
    }
    different = {
        "one": {},
        "two": {"clients": 0},
        "adam": {"strategy": "adam"},
        "stock": {"strategy": "stock"},
    }
    with open_lab(folder / "lab", "--simulation") as lab:
        made = {
            name: Run(lab, folder / name, common | config, "--federation-config", ENGINE)
            for name, config in different.items()
        }
        ends = {name: run.end(240.0) for name, run in made.items()}
        logs = "\n".join(run.log() for run in made.values() if run.status != "finished:completed")
        assert ends == dict.fromkeys(different, "finished:completed"), logs
        assert_nothing_left(lab)
        yield made
        assert_all_ended(lab)


@pytest.mark.parametrize("name", ["one", "two", "adam"])
def test_cohorts_and_outcomes_are_those_of_the_loop_alone(runs, name):
    """FedAdam too: who trains depends on who answers, not on the model."""
    selector = make_selector("e3cs-0.5", Federation(CLIENTS, COHORT, rng=SEED, horizon=ROUNDS))
    rows = runs[name].rows
    assert [row["round"] for row in rows] == list(range(1, ROUNDS + 1))
    for row, record in zip(
        rows, play(selector, bernoulli(class_rates(CLIENTS), SEED), ROUNDS), strict=True
    ):
        assert [int(client) for client in fates(row)] == record.cohort.clients.tolist()
        assert [status == "arrived" for status in fates(row).values()] == record.arrived.tolist()
        assert set(fates(row).values()) <= {"arrived", "failed"}
    assert any("by lot" in asked["reason"] for row in rows for asked in row["asked"])
    assert_replayed(runs[name], rows, CLIENTS, SEED)
    np.testing.assert_array_equal(
        runs[name].saved()["selector"]["log_weights"], selector.log_weights
    )


def test_the_same_seed_gives_the_same_run(runs):
    def without_time(row):
        asked = [{**asked, "seconds": None} for asked in row["asked"]]
        checksum = {"fedcohort-sha256": None}  # it covers the seconds
        return {**row, **checksum, "seconds": None, "asked": asked}

    assert [without_time(row) for row in runs["one"].rows] == [
        without_time(row) for row in runs["two"].rows
    ]
    assert runs["one"].final()["w"] == runs["two"].final()["w"]


def test_counts_and_successes_are_those_of_fedcohort_simulate(runs):
    setting = SimulationConfig(
        ("e3cs-0.5",),
        clients=CLIENTS,
        cohort=COHORT,
        rounds=ROUNDS,
        seeds=1,
        first_seed=SEED,
    )
    simulated, rows = simulate_selector(setting, "e3cs-0.5"), runs["one"].rows
    asked = np.concatenate([[int(client) for client in fates(row)] for row in rows])
    np.testing.assert_array_equal(np.bincount(asked, minlength=CLIENTS), simulated.counts[0])
    np.testing.assert_array_equal([row["arrived"] for row in rows], simulated.successes[0])
    assert 0 < rows[-1]["cep"] < COHORT * ROUNDS


def test_the_average_of_those_that_answered_is_the_model(runs):
    assert_model(runs["one"], averaged(runs["one"].rows, PARTITIONS))


def test_a_wrapped_fedadam_moves_as_fedadam_does(runs):
    """Kingma and Ba's rule by hand, on the average of those that answered.

    A round in which nobody answered moves nothing.
    """
    model, mean, square = 0.0, 0.0, 0.0
    for row in runs["adam"].rows:
        came = [
            PARTITIONS[name]["number"] for name, status in fates(row).items() if status == "arrived"
        ]
        if not came:
            continue
        step = np.mean(came)
        mean, square = 0.9 * mean + 0.1 * step, 0.99 * square + 0.01 * step**2
        rate = 0.1 * np.sqrt(1 - 0.99 ** (row["round"] + 1.0)) / (1 - 0.9 ** (row["round"] + 1.0))
        model += rate * mean / (np.sqrt(square) + 1e-3)
    np.testing.assert_allclose(runs["adam"].final()["w"], [model] * 4, rtol=1e-5)
    assert set(runs["adam"].saved()["strategy"]["0"]) >= {"m_t", "v_t"}


def test_a_stock_strategy_survives_clients_that_fail_by_lot(runs):
    """FedAvg alone: no journal, and a model that moved."""
    assert runs["stock"].rows == []
    assert len(runs["stock"].final()["seconds"]) == ROUNDS
    assert runs["stock"].final()["w"][0] > 0
    assert "aggregate_train: Received" in runs["stock"].log()
    assert "by lot" in runs["stock"].log()
