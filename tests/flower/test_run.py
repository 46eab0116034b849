"""Runs that are killed and resumed equal runs that were not."""

from functools import partial

import numpy as np
import pytest
from fakes import Killed, federation, learner, record
from flwr.app import MetricRecord
from flwr.serverapp.strategy import (
    DifferentialPrivacyServerSideFixedClipping,
    FedAdagrad,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedMedian,
    FedYogi,
)
from helpers import INITIAL, ROUNDS, assert_alike, fails, play

from fedcohort.flower import CohortStrategy, checkpoint
from fedcohort.flower.kept_metrics import FIELDS
from fedcohort.selection.protocol import Cohort

STRATEGIES = {
    "FedAvg": FedAvg,
    "FedAdam": FedAdam,
    "FedAvgM": partial(FedAvgM, server_momentum=0.9, server_learning_rate=0.5),
    "FedYogi": FedYogi,
    "FedAdagrad": FedAdagrad,
    "FedMedian": FedMedian,
    "DifferentialPrivacy": lambda: DifferentialPrivacyServerSideFixedClipping(
        FedAvgM(server_momentum=0.5), 0.0, 2.0, 3
    ),
}


def killed_at(call, clock, folder, **options):
    """Play until the server dies at a call of the grid, then go on from the folder."""
    grid = federation(clock, 6, fails)
    grid.dies_at_call = call
    with pytest.raises(Killed):
        play(grid, folder, **options)
    grid.dies_at_call = None
    clock.sleep(3.0)  # until somebody starts it again
    return play(grid, folder, resume=True, **options)


def evaluations(grid, folder, rounds=2, **options):
    """Play some rounds; return the metrics of all evaluations by clients, rounded."""
    strategy = CohortStrategy(
        FedAvg(), "random", 3, deadline=5.0, wait=10.0, folder=folder, **options
    )
    result = strategy.start(grid, record(**INITIAL), num_rounds=rounds)
    metrics = result.evaluate_metrics_clientapp
    return {number: round(metrics[number]["accuracy"], 9) for number in metrics}


def calls_of(clock, folder, **options):
    grid = federation(clock, 6, fails)
    outcome = play(grid, folder, **options)
    assert [row["round"] for row in outcome[2]] == list(range(1, ROUNDS + 1))
    return outcome, grid.calls


@pytest.mark.parametrize("aggregation", ["wrapped", "paper"])
def test_killed_at_any_call_the_run_ends_as_if_nothing_had_happened(clock, tmp_path, aggregation):
    whole, calls = calls_of(clock, tmp_path / "whole", aggregation=aggregation)
    for call in range(1, calls + 1, 1 if aggregation == "wrapped" else 7):
        assert_alike(killed_at(call, clock, tmp_path / str(call), aggregation=aggregation), whole)


def test_killed_at_any_call_the_run_returns_the_evaluations_of_all_rounds(clock, tmp_path):
    grid = federation(clock, 4)
    # Accuracies 0, 0.1, 0.2 and 0.3, weighted by 1, 2, 3 and 4 examples: (0.2 + 0.6 + 1.2) / 10.
    everything = {1: 0.2, 2: 0.2}
    assert evaluations(grid, tmp_path / "whole") == everything
    for call in range(1, grid.calls + 1):
        dying = federation(clock, 4)
        dying.dies_at_call = call
        with pytest.raises(Killed):
            evaluations(dying, tmp_path / str(call))
        again = federation(clock, 4)
        assert evaluations(again, tmp_path / str(call), resume=True) == everything
        # The evaluation is saved: there is nothing left to ask.
        idle = federation(clock, 4)
        assert evaluations(idle, tmp_path / str(call), resume=True) == everything
        assert idle.sent("evaluate") == []


def test_a_round_that_nobody_evaluates_is_not_evaluated_again_and_again(clock, tmp_path):
    def silent():
        grid = federation(clock, 4)
        for client in grid.clients.values():
            client.evaluate = lambda message: None
        return grid

    assert evaluations(silent(), tmp_path, rounds=1) == {}
    again = silent()
    assert evaluations(again, tmp_path, rounds=1, resume=True) == {}
    assert again.sent("evaluate") == []


def test_an_evaluation_that_is_repeated_has_the_deadline_of_its_round(clock, tmp_path):
    grid = federation(clock, 4)
    options = {"deadline": lambda times: 2.0 + times.round, "selector": "random"}
    for client in grid.clients.values():
        client.evaluate = kill
    with pytest.raises(Killed):
        play(grid, tmp_path, **options)
    again = federation(clock, 4)
    play(again, tmp_path, resume=True, rounds=1, **options)
    assert {message.metadata.ttl for message in again.sent("evaluate")} == {3.0}


def kill(message):
    raise Killed


@pytest.mark.parametrize("name", STRATEGIES)
def test_what_a_strategy_keeps_between_rounds_survives(clock, tmp_path, name):
    whole, calls = calls_of(clock, tmp_path / "whole", make=STRATEGIES[name])
    for call in range(2, calls + 1, max(1, calls // 4)):
        assert_alike(killed_at(call, clock, tmp_path / str(call), make=STRATEGIES[name]), whole)


@pytest.mark.parametrize(
    "selector", ["random", "e3cs-0", "e3cs-inc", "e3cs-linear", "e3cs-0.8-robust", "rpow-d"]
)
def test_every_selector_goes_on_where_it_was(clock, tmp_path, selector):
    options = {"selector": selector, "loss_key": "train_loss"}
    whole, calls = calls_of(clock, tmp_path / "whole", **options)
    for call in (calls // 2, calls - 2):
        assert_alike(killed_at(call, clock, tmp_path / str(call), **options), whole)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("round", [1, 3])
def test_killed_while_it_saves_it_goes_on(clock, tmp_path, monkeypatch, when, round):
    whole, _ = calls_of(clock, tmp_path / "whole")
    save, saves = checkpoint.save, []

    def dying(folder, state):
        saves.append(state["round"])
        if when == "after" or len(saves) != round:
            save(folder, state)
        if len(saves) == round:
            raise Killed

    monkeypatch.setattr(checkpoint, "save", dying)
    with pytest.raises(Killed):
        play(federation(clock, 6, fails), tmp_path / "cut")
    monkeypatch.setattr(checkpoint, "save", save)
    assert_alike(play(federation(clock, 6, fails), tmp_path / "cut", resume=True), whole)


def test_killed_again_and_again_it_still_ends_the_same(clock, tmp_path):
    whole, _ = calls_of(clock, tmp_path / "whole")
    folder = tmp_path / "cut"
    for _ in range(100):
        grid = federation(
            clock, 6, fails
        )  # a new database, as after a crash of Flower's own server
        grid.dies_at_call = 23
        try:
            outcome = play(grid, folder, resume=True)
        except Killed:
            continue
        break
    assert_alike(outcome, whole)


def test_clients_on_new_nodes_after_the_crash_keep_their_weights(clock, tmp_path):
    whole, calls = calls_of(clock, tmp_path / "whole")
    grid = federation(clock, 6, fails)
    grid.dies_at_call = calls // 2
    with pytest.raises(Killed):
        play(grid, tmp_path / "cut")
    restarted = federation(clock, 0)
    for number in reversed(range(6)):
        restarted.join(
            900 - 7 * number, learner(number, lambda round, number=number: fails(number, round))
        )
    assert_alike(play(restarted, tmp_path / "cut", resume=True), whole)


def test_clients_that_joined_are_remembered(clock, tmp_path):
    def grid_with_newcomers():
        grid = federation(clock, 4, fails)
        first = grid.clients[100].train

        def train(message):
            grid.clients[100].train = first
            for number in (4, 5):
                clock.after(1.0, lambda number=number: grid.join(100 + number, learner(number)))
            return first(message)

        grid.clients[100].train = train
        for client in grid.clients.values():
            client.delay = 3.0
        return grid

    options = {"selector": "random", "rounds": 6}
    grid = grid_with_newcomers()
    whole = play(grid, tmp_path / "whole", cohort_size=4, **options)
    asked = [{asked["client"] for asked in row["asked"]} for row in whole[2]]
    assert asked[0] == {"0", "1", "2", "3"}
    assert any({"4", "5"} & clients for clients in asked)
    half = grid_with_newcomers()
    play(half, tmp_path / "cut", cohort_size=4, selector="random", rounds=3)
    assert_alike(play(half, tmp_path / "cut", cohort_size=4, resume=True, **options), whole)


def test_a_run_that_is_over_is_not_played_again(clock, tmp_path):
    whole, _ = calls_of(clock, tmp_path)
    grid = federation(clock, 6, fails)
    assert_alike(play(grid, tmp_path, resume=True), whole)
    assert grid.sent() == []


def test_a_run_can_be_made_longer(clock, tmp_path):
    options = {"selector": "e3cs-0.5"}
    whole, _ = calls_of(clock, tmp_path / "whole", **options)
    play(federation(clock, 6, fails), tmp_path / "cut", rounds=2, **options)
    assert_alike(play(federation(clock, 6, fails), tmp_path / "cut", resume=True, **options), whole)


def test_resume_without_a_run_begins_one(clock, tmp_path):
    whole, _ = calls_of(clock, tmp_path / "whole")
    assert_alike(play(federation(clock, 6, fails), tmp_path / "new", resume=True), whole)


@pytest.mark.parametrize(
    "cut",
    [b'{"round": 3, "seco', b'{"round": 3', b"\x00\x00\x00\x00", b"nul", b"3", b"[]", b"\n\n"],
)
def test_a_line_that_was_cut_does_not_stop_it(clock, tmp_path, cut):
    whole, _ = calls_of(clock, tmp_path / "whole")
    play(federation(clock, 6, fails), tmp_path / "cut", rounds=2)
    with (tmp_path / "cut" / "rounds.jsonl").open("ab") as file:
        file.write(cut)
    assert_alike(play(federation(clock, 6, fails), tmp_path / "cut", resume=True), whole)


def test_a_resumed_run_returns_the_metrics_of_all_rounds(clock, tmp_path):
    def metrics(folder, resume, rounds):
        strategy = CohortStrategy(
            FedAvg(), cohort_size=3, deadline=5.0, wait=10.0, folder=folder, resume=resume
        )
        server = {"evaluate_fn": lambda round, arrays: MetricRecord({"round": round})}
        result = strategy.start(
            federation(clock, 6), record(**INITIAL), num_rounds=rounds, **server
        )
        return [
            {
                n: {k: round(v, 9) for k, v in logged.items()}
                for n, logged in getattr(result, kind).items()
            }
            for kind in FIELDS.values()
        ]

    whole = metrics(tmp_path / "whole", False, ROUNDS)
    assert [list(kind) for kind in whole] == [[1, 2, 3, 4], [1, 2, 3, 4], [0, 1, 2, 3, 4]]
    metrics(tmp_path / "cut", False, 2)
    assert metrics(tmp_path / "cut", True, ROUNDS) == whole
    assert metrics(tmp_path / "cut", True, ROUNDS) == whole  # nothing left to play


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_float32_model_goes_on_where_it_was(clock, tmp_path, name):
    initial = record(w=np.full((2, 2), 0.1, np.float32), b=np.zeros(1, np.float32))
    options = {"make": STRATEGIES[name], "initial": initial}
    whole = play(federation(clock, 6, fails), tmp_path / "whole", **options)
    play(federation(clock, 6, fails), tmp_path / "cut", rounds=2, **options)
    assert_alike(play(federation(clock, 6, fails), tmp_path / "cut", resume=True, **options), whole)


@pytest.mark.parametrize(
    "names", [["array"], ["array", "in"], ["in", "record", "single", "list", "dict", "number"]]
)
def test_models_and_clients_may_be_called_as_they_like(clock, tmp_path, names):
    def grid():
        grid = federation(clock, len(names))
        for client, name in zip(grid.clients.values(), names, strict=True):
            client.says = name
        return grid

    initial = record(**{name: np.zeros(place + 1) for place, name in enumerate(names)})
    options = {"make": FedAdam, "initial": initial, "cohort_size": 1}
    whole = play(grid(), tmp_path / "whole", **options)
    play(grid(), tmp_path / "cut", rounds=2, **options)
    assert_alike(play(grid(), tmp_path / "cut", resume=True, **options), whole)


@pytest.mark.parametrize("selector", ["random", "e3cs-0.5"])
def test_clients_that_joined_while_the_server_was_down_are_newcomers(clock, tmp_path, selector):
    grid = federation(clock, 3)
    play(grid, tmp_path, rounds=2, selector=selector)
    for number in (3, 4):
        grid.join(200 + number, learner(number))
    _, state, rows = play(grid, tmp_path, resume=True, rounds=12, selector=selector)
    assert state["num_clients"] == 5
    asked = {asked["client"] for row in rows[2:] for asked in row["asked"]}
    assert asked == {"0", "1", "2", "3", "4"}


def test_a_client_that_joined_in_the_last_round_before_a_crash_is_a_newcomer_after_it(
    clock, tmp_path
):
    grid = federation(clock, 3)
    for client in grid.clients.values():
        client.delay = 4.0
    clock.after(2.0, lambda: grid.join(200, learner(3)))
    _, state, _ = play(
        grid, tmp_path, rounds=1, deadline=9.0, make=partial(FedAvg, fraction_evaluate=0.0)
    )
    assert state["num_clients"] == 3
    assert checkpoint.load(tmp_path, True, INITIAL)["registry"]["names"] == ["0", "1", "2", "3"]
    _, state, rows = play(grid, tmp_path, resume=True, rounds=8, deadline=9.0)
    assert state["num_clients"] == 4
    assert any(asked["client"] == "3" for row in rows for asked in row["asked"])


@pytest.mark.parametrize("left", [1, 2])
def test_a_run_goes_on_with_fewer_clients_than_a_cohort(clock, tmp_path, logged, left):
    grid = federation(clock, 6)
    play(grid, tmp_path, rounds=2)
    for node in range(100 + left, 106):
        grid.leave(node)
    _, state, rows = play(grid, tmp_path, resume=True, rounds=3)
    assert [len(row["asked"]) for row in rows] == [3, 3, left]
    assert state["num_clients"] == 6
    assert any(
        line.startswith(f"WARNING: {left} of ") and "clients connected within 10 s" in line
        for line in logged
    )


def test_a_run_does_not_go_on_without_any_client(clock, tmp_path):
    play(federation(clock, 6), tmp_path, rounds=2)
    with pytest.raises(
        ValueError,
        match="wait must be long enough for a client to connect, got 10 s in which none did",
    ):
        play(federation(clock, 0), tmp_path, resume=True)


def test_those_who_take_longer_to_come_back_are_waited_for(clock, tmp_path):
    whole, _ = calls_of(clock, tmp_path / "whole")
    play(federation(clock, 6, fails), tmp_path / "cut", rounds=2)
    grid = federation(clock, 6, fails)
    for place, client in enumerate(grid.clients.values()):
        client.query_delay = 0.3 * place  # seconds, of ten that may be waited
    assert_alike(play(grid, tmp_path / "cut", resume=True), whole)


def test_with_their_number_announced_those_who_take_longer_to_come_back_are_waited_for(
    clock, tmp_path
):
    options = {"num_clients": 6}
    whole, _ = calls_of(clock, tmp_path / "whole", **options)
    play(federation(clock, 6, fails), tmp_path / "cut", rounds=2, **options)
    grid = federation(clock, 6, fails)
    for place, client in enumerate(grid.clients.values()):
        client.query_delay = 0.3 * place
    assert_alike(play(grid, tmp_path / "cut", resume=True, **options), whole)


def test_a_selector_of_ones_own_goes_on_where_it_was(clock, tmp_path):
    def play_in_turn(folder, **options):
        return play(federation(clock, 6, fails), folder, selector=InTurn(6, 3), **options)

    whole = play_in_turn(tmp_path / "whole")
    play_in_turn(tmp_path / "cut", rounds=2)
    assert_alike(play_in_turn(tmp_path / "cut", resume=True), whole)


class InTurn:
    """A selector of one's own, whose state is its own business."""

    def __init__(self, num_clients, cohort_size):
        self.num_clients, self.cohort_size, self.turn = num_clients, cohort_size, 0

    def select(self, round, available=None):
        there = np.arange(self.num_clients) if available is None else np.asarray(available)
        chosen = np.sort(np.roll(there, -self.turn)[: self.cohort_size])
        return Cohort(round, chosen, np.ones(len(chosen)))

    def update(self, outcome):
        self.turn += 1

    def join(self, count=1):
        self.num_clients += count

    def state_dict(self):
        return {"turn": self.turn}

    def load_state_dict(self, state):
        self.turn = state["turn"]
