"""The metrics of all rounds: how much is kept, and what comes back."""

import pytest
from fakes import federation, learner
from flwr.app import MetricRecord
from flwr.serverapp.strategy import FedAvg
from helpers import cohort_strategy, initial, journal

from fedcohort.files import load_state, save_state
from fedcohort.flower import Limits
from fedcohort.flower.kept_metrics import FIELDS, KeptMetrics

LONGEST = -1.2345678901234567e-300  # no float has more characters: 24


@pytest.mark.parametrize(("name", "is_kept"), [("abd", True), ("abde", False), ("ä", False)])
def test_as_much_is_kept_as_a_reply_of_plain_letters_within_the_limits_may_hold(
    logged, name, is_kept
):
    """Two values: {"abc": 24 characters, "abd": 24 characters} has 66 bytes; ä takes six."""
    metrics = KeptMetrics(Limits(most_metrics=2, longest_name=3))
    assert metrics.add("train", 1, MetricRecord({"abc": LONGEST, name: LONGEST})) == is_kept
    assert list(metrics.result.train_metrics_clientapp) == ([1] if is_kept else [])
    warnings = [line for line in logged if "bytes, more than 66" in line]
    assert len(warnings) == (not is_kept)


def test_the_servers_own_metrics_are_not_bounded():
    metrics = KeptMetrics(Limits(most_metrics=1, longest_name=1))
    assert metrics.add("server", 0, MetricRecord({"accuracy on all devices": LONGEST}))


def test_a_client_that_arrives_alone_cannot_fill_the_checkpoint(clock, tmp_path, logged):
    """Its names keep the limits in characters, but take twelve bytes each in JSON."""

    def train(message):
        answer = honest.train(message)
        answer["metrics"] = MetricRecord({"num-examples": 1} | dict.fromkeys(names, 1.0))
        return answer

    honest = learner(0)
    names = [20 * chr(0x1F600 + place) for place in range(9)]
    grid = federation(clock, 1)
    grid.clients[100].train = train
    limits = Limits(most_metrics=10, longest_name=20)
    strategy = cohort_strategy(
        FedAvg(fraction_evaluate=0.0), cohort_size=1, limits=limits, folder=tmp_path
    )
    result = strategy.start(grid, initial(), num_rounds=2)

    assert result.train_metrics_clientapp == {}
    assert sum("the metrics are left out" in line for line in logged) == 2
    assert [row["arrived"] for row in journal(tmp_path)] == [1, 1]
    # Half way to 1 in each round, as the client trains: 0.25, 0.625, 0.8125.
    assert result.arrays["b"].numpy().tolist() == [0.8125]


def test_the_header_of_a_checkpoint_does_not_grow_with_the_rounds(tmp_path):
    """Safetensors refuses a header of more than 100 MB, which would end the run."""
    path = tmp_path / "state.safetensors"
    metrics = KeptMetrics(Limits())
    headers = []
    for rounds in (1, 200):
        for number in range(rounds):
            metrics.add("train", number, MetricRecord({"loss": 1.0 + number}))
        save_state(path, metrics.state_dict())
        headers.append(int.from_bytes(path.read_bytes()[:8], "little"))
    assert headers[1] <= headers[0] + 16  # the size and the end of the array have more digits


def test_all_metrics_come_back(tmp_path):
    metrics = KeptMetrics(Limits())
    for place, kind in enumerate(FIELDS):
        metrics.add(kind, place + 1, MetricRecord({"ä": place, "all": [1.5, 2.5]}))
    metrics.evaluated = 7
    save_state(tmp_path / "state.safetensors", metrics.state_dict())
    again = KeptMetrics(Limits())
    again.load_state_dict(load_state(tmp_path / "state.safetensors"))
    assert again.evaluated == 7
    for place, field in enumerate(FIELDS.values()):
        kept = getattr(again.result, field)
        assert {number: dict(kept[number]) for number in kept} == {
            place + 1: {"ä": place, "all": [1.5, 2.5]}
        }


@pytest.mark.parametrize(("evaluations", "last"), [({}, 0), ({"2": {"x": 1}, "3": {"x": 2}}, 3)])
def test_a_checkpoint_of_version_010_is_read(evaluations, last):
    metrics = KeptMetrics(Limits())
    metrics.load_state_dict(
        {
            "train_metrics_clientapp": {"1": {"loss": 0.5}},
            "evaluate_metrics_clientapp": evaluations,
            "evaluate_metrics_serverapp": {},
        }
    )
    assert dict(metrics.result.train_metrics_clientapp[1]) == {"loss": 0.5}
    assert metrics.evaluated == last
