"""Rules that remember the last update of every client, on the server's disk."""

from collections import namedtuple
from functools import partial

import numpy as np
import pytest
from fakes import Killed, federation, learner, model_of, record
from flwr.serverapp.strategy import FedAvg, FedTrimmedAvg
from helpers import INITIAL, ROUNDS, assert_alike, cohort_strategy, fails, play

from fedcohort.files import load_state
from fedcohort.flower import checkpoint, update_memory
from fedcohort.flower.update_memory import UpdateMemory
from fedcohort.lab.folder import CHECKPOINT, PREVIOUS_CHECKPOINT, load_checkpoint

REMEMBERING = ("mifa", "fedvarp")


def second_fails_last(client, round):
    return client == 1 and round == 2


def train_two(clock, folder, aggregation):
    strategy = cohort_strategy(cohort_size=2, aggregation=aggregation, folder=folder)
    grid = federation(clock, 2, second_fails_last)
    return strategy.start(grid, record(w=[0.0]), num_rounds=2).arrays["w"].numpy().item()


# Round 1 moves the model by 1/3 * 1/2 + 2/3 * 1 = 5/6. In round 2 client 0 alone returns, with an
# update of (1 - 5/6) / 2 = 1/12.


def test_mifa_counts_the_last_update_of_the_missing(clock, tmp_path):
    assert train_two(clock, tmp_path, "mifa") == pytest.approx(5 / 6 + 1 / 3 * 1 / 12 + 2 / 3)


def test_fedvarp_corrects_what_is_new_by_what_is_remembered(clock, tmp_path):
    assert train_two(clock, tmp_path, "fedvarp") == pytest.approx(5 / 6 + (1 / 12 - 1 / 2) + 5 / 6)


@pytest.mark.parametrize("name", REMEMBERING)
def test_an_array_without_a_dimension_is_remembered(clock, tmp_path, name):
    strategy = cohort_strategy(cohort_size=2, aggregation=name, folder=tmp_path)
    grid = federation(clock, 2, second_fails_last)
    found = strategy.start(grid, record(w=[0.0], scale=0.0), num_rounds=2).arrays
    assert found["scale"].numpy().shape == ()
    assert found["scale"].numpy() == found["w"].numpy().item()


def replay(rows, normalises):
    """The rule's definition by hand, from who arrived in which round."""
    model = {name: array.copy() for name, array in INITIAL.items()}
    remembered, declared = {}, {}
    for row in rows:
        arrived = [int(one["client"]) for one in row["asked"] if one["status"] == "arrived"]
        if not arrived:
            continue
        declared |= {client: client + 1 for client in arrived}
        mean = sum(declared.values()) / len(declared)
        total = sum(declared.values()) + (6 - len(declared)) * mean
        share = {client: number / total for client, number in declared.items()}
        divisor = sum(share[client] for client in arrived) if normalises else 1.0
        for name, current in model.items():
            update = {client: 0.5 * (client + 1 - current) for client in arrived}
            old = {client: remembered.get((client, name), 0.0) for client in declared}
            news = sum(share[client] * (update[client] - old[client]) for client in arrived)
            average = sum(share[client] * old[client] for client in declared)
            model[name] = current + news / divisor + average
            for client in arrived:
                remembered[client, name] = update[client].astype(np.float32).astype(float)
    return model


@pytest.mark.parametrize("name", REMEMBERING)
def test_many_rounds_follow_the_definition(clock, tmp_path, name):
    grid = federation(clock, 6, fails)
    arrays, _, rows = play(grid, tmp_path, aggregation=name, rounds=12)
    wanted = replay(rows, normalises=name == "fedvarp")
    for array, values in model_of(arrays).items():
        np.testing.assert_allclose(values, wanted[array], rtol=1e-11)


def named_files(folder, name):
    state = load_state(folder / name)["replies"]["rule"]["memory"]
    return {f"{int(client):07d}-{round:07d}.safetensors" for client, round in state.items()}


@pytest.mark.parametrize("rounds", [1, 2, 5, 12])
def test_the_files_of_two_checkpoints_are_kept_and_no_others(clock, tmp_path, rounds):
    grid = federation(clock, 6, fails)
    play(grid, tmp_path, aggregation="fedvarp", rounds=rounds)
    named = [named_files(tmp_path, name) for name in (CHECKPOINT, PREVIOUS_CHECKPOINT)]
    assert {path.name for path in (tmp_path / "memory").iterdir()} == named[0] | named[1]
    update = load_state(tmp_path / "memory" / sorted(named[0])[0])["update"]
    assert {array.dtype for array in update.values()} == {np.dtype(np.float32)}


def resume_after(dying, clock, folder, whole, **options):
    """Play until the server dies, go on, and compare with a run that was not stopped."""
    with pytest.MonkeyPatch.context() as patch:
        dying(patch)
        with pytest.raises(Killed):
            play(federation(clock, 6, fails), folder, **options)
    assert_alike(play(federation(clock, 6, fails), folder, resume=True, **options), whole)
    there = {path.name for path in (folder / "memory").iterdir()}
    for name in (CHECKPOINT, PREVIOUS_CHECKPOINT):
        assert named_files(folder, name) <= there


def dying_at(target, name, count, is_done):
    """A patch that lets the server die at a call, before or after the call does its work."""

    def patch(monkeypatch):
        work, calls = getattr(target, name), []

        def dies(*args, **kwargs):
            calls.append(name)
            if len(calls) == count and not is_done:
                raise Killed
            result = work(*args, **kwargs)
            if len(calls) == count:
                raise Killed
            return result

        monkeypatch.setattr(target, name, dies)

    return patch


@pytest.mark.parametrize("name", REMEMBERING)
def test_killed_at_any_write_the_run_ends_as_if_nothing_had_happened(clock, tmp_path, name):
    options = {"aggregation": name}
    whole = play(federation(clock, 6, fails), tmp_path / "whole", **options)
    writes = sum(row["arrived"] for row in whole[2])
    assert writes > ROUNDS
    places = [(update_memory, "save_state", count) for count in range(1, writes + 1)]
    for count in range(1, ROUNDS + 2):
        places.append((checkpoint, "save", count))
        places.append((UpdateMemory, "on_checkpoint", count))
    for number, (target, method, count) in enumerate(places):
        for is_done in (False, True):
            folder = tmp_path / f"{number}-{is_done}"
            resume_after(dying_at(target, method, count, is_done), clock, folder, whole, **options)


def test_from_the_checkpoint_before_the_last_the_run_goes_on_exactly(clock, tmp_path):
    options = {"aggregation": "fedvarp"}
    whole = play(federation(clock, 6, fails), tmp_path / "whole", **options)
    folder = tmp_path / "cut"
    play(federation(clock, 6, fails), folder, rounds=3, **options)
    path = folder / CHECKPOINT
    path.write_bytes(path.read_bytes()[:-9])
    resumed = play(federation(clock, 6, fails), folder, resume=True, from_previous=True, **options)
    assert_alike(resumed, whole)


def test_clients_that_come_later_are_remembered(clock, tmp_path):
    grid = federation(clock, 3)
    options = {"aggregation": "mifa", "selector": "random"}
    play(grid, tmp_path, rounds=2, **options)
    grid.join(200, learner(3))
    play(grid, tmp_path, resume=True, rounds=12, **options)
    assert set(load_checkpoint(tmp_path)["replies"]["rule"]["memory"]) == {"0", "1", "2", "3"}


def test_a_run_that_begins_anew_forgets_the_files_of_the_one_before(clock, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        dying_at(checkpoint, "save", 2, False)(patch)
        with pytest.raises(Killed):
            play(federation(clock, 6), tmp_path, aggregation="mifa")
    assert list((tmp_path / "memory").iterdir())
    grid = federation(clock, 6, lambda client, round: True)
    play(grid, tmp_path, aggregation="mifa", rounds=1)
    assert not list((tmp_path / "memory").iterdir())


@pytest.mark.parametrize("damage", ["cut", "missing", "another client's"])
def test_a_damaged_file_is_refused_by_name(clock, tmp_path, damage):
    resume = partial(play, folder=tmp_path, aggregation="mifa")
    resume(federation(clock, 6), rounds=2)
    first, second = sorted(named_files(tmp_path, CHECKPOINT))[:2]
    path = tmp_path / "memory" / first
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    elif damage == "missing":
        path.unlink()
    else:
        path.write_bytes((tmp_path / "memory" / second).read_bytes())
    with pytest.raises(ValueError, match=rf"{path} must "):
        resume(federation(clock, 6), resume=True)


@pytest.mark.parametrize("name", REMEMBERING)
def test_a_folder_is_needed(name):
    with pytest.raises(ValueError, match=f"folder must be given for aggregation '{name}'"):
        cohort_strategy(aggregation=name)


def test_a_strategy_whose_aggregation_protects_is_refused(tmp_path):
    with pytest.raises(ValueError, match="aggregation must be 'wrapped' for FedTrimmedAvg"):
        cohort_strategy(FedTrimmedAvg(), aggregation="mifa", folder=tmp_path)


def test_models_with_whole_numbers_are_refused(clock, tmp_path):
    strategy = cohort_strategy(FedAvg(), aggregation="mifa", folder=tmp_path)
    sent = record(w=[0.0], steps=np.array([3]))
    with pytest.raises(
        ValueError, match=r"arrays of the model must be of floating point .* got 'steps' of int64"
    ):
        strategy.start(federation(clock, 3), sent, num_rounds=1)


def test_what_does_not_fit_the_disk_is_refused(clock, tmp_path, monkeypatch, logged):
    usage = namedtuple("usage", "free")
    # INITIAL has 5 numbers: (6 + 2 * 3) updates of 20 bytes
    monkeypatch.setattr(update_memory, "disk_usage", lambda path: usage(239))
    told = r"folder must have room for 240 bytes to remember the updates of 6 clients, .* 239 free"
    options = {"aggregation": "mifa", "num_clients": 6}
    with pytest.raises(ValueError, match=told):
        play(federation(clock, 6), tmp_path / "full", **options)
    monkeypatch.setattr(update_memory, "disk_usage", lambda path: usage(240))
    play(federation(clock, 6), tmp_path / "fits", **options)
    assert any("the last updates of 6 clients take up to 240 bytes" in line for line in logged)


def test_an_update_too_long_for_float32_is_left_out(clock, tmp_path):
    grid = federation(clock, 3)
    far = grid.clients[101]
    train = far.train

    def train_too_far(message):
        content = train(message)
        content["arrays"] = record(w=[1e39])
        return content

    far.train = train_too_far
    strategy = cohort_strategy(cohort_size=3, aggregation="fedvarp", folder=tmp_path)
    result = strategy.start(grid, record(w=[0.0]), num_rounds=1)
    assert sorted(strategy.training.aggregator.memory.rounds) == [0, 2]
    # Clients 0 and 2 have 1 and 3 examples: (1 * 1/2 + 3 * 3/2) / 4
    assert result.arrays["w"].numpy() == pytest.approx([5 / 4])
