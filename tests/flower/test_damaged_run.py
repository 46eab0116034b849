"""A Flower run whose files were damaged or lost: nothing begins anew by itself."""

import pytest
from fakes import Killed, federation
from helpers import assert_alike, fails, journal, play

from fedcohort.flower import checkpoint
from fedcohort.lab.folder import load_checkpoint, save_checkpoint
from fedcohort.lab.folder.flower import FLOWER_CHECKPOINT_PARTS


@pytest.fixture
def whole(clock, tmp_path):
    return play(federation(clock, 6, fails), tmp_path / "whole")


@pytest.fixture
def folder(clock, tmp_path, whole):
    """Hold a run of its own that ended well, with the checkpoints of rounds 4 and 3."""
    play(federation(clock, 6, fails), tmp_path / "run")
    return tmp_path / "run"


def resume(clock, folder, **options):
    return play(federation(clock, 6, fails), folder, resume=True, **options)


def flip(path, place=0.5):
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 8
    path.write_bytes(content)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_damaged_checkpoint_is_refused_and_the_one_before_gives_the_same_run(
    clock, folder, whole
):
    flip(folder / "checkpoint.safetensors")
    damaged = contents(folder)
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors must be .* after round 3"):
        resume(clock, folder)
    assert contents(folder) == damaged
    assert_alike(resume(clock, folder, from_previous=True), whole)
    aside = folder / "checkpoint.damaged-1.safetensors"
    assert aside.read_bytes() == damaged["checkpoint.safetensors"]


def test_a_lost_checkpoint_does_not_make_the_run_begin_anew(clock, folder, whole):
    (folder / "checkpoint.safetensors").unlink()
    before = contents(folder)
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors must be .*no such file"):
        resume(clock, folder)
    assert contents(folder) == before
    assert_alike(resume(clock, folder, from_previous=True), whole)


@pytest.mark.parametrize("options", [{"resume": True}, {"resume": False}])
def test_a_journal_without_any_checkpoint_is_not_emptied(clock, folder, options):
    for name in ("checkpoint.safetensors", "checkpoint.previous.safetensors"):
        (folder / name).unlink()
    before = contents(folder)
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors must be there to go on"):
        play(federation(clock, 6, fails), folder, **options)
    assert contents(folder) == before


def test_a_damaged_line_of_the_journal_is_refused_by_name(clock, folder):
    flip(folder / "rounds.jsonl", 0.1)
    before = contents(folder)
    with pytest.raises(ValueError, match=r"rounds\.jsonl must hold one round per line, got line 1"):
        resume(clock, folder, rounds=6)
    assert contents(folder)["rounds.jsonl"] == before["rounds.jsonl"]


def test_a_cut_journal_is_refused_by_name(clock, folder):
    path = folder / "rounds.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    with pytest.raises(ValueError, match=r"rounds\.jsonl must hold rounds 1 to 4, got 2 of them"):
        resume(clock, folder, rounds=6)


def test_a_repaired_run_that_is_killed_before_a_checkpoint_writes_no_round_twice(
    clock, folder, monkeypatch
):
    path = folder / "rounds.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"garbage\n", *lines[2:]]))
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", kill)  # after the line of round 5
        with pytest.raises(Killed):
            resume(clock, folder, rounds=6, from_previous=True)
    assert [row["round"] for row in journal(folder)] == [1, 3, 4, 5]

    with pytest.raises(ValueError, match="must hold rounds 1 to 4, got 3 of them"):
        resume(clock, folder, rounds=6)
    resume(clock, folder, rounds=6, from_previous=True)
    assert [row["round"] for row in journal(folder)] == [1, 3, 4, 5, 6]


def test_the_one_before_is_only_asked_for_with_resume(clock, tmp_path):
    with pytest.raises(ValueError, match="resume must be true where from_previous is, got False"):
        play(federation(clock, 6, fails), tmp_path, from_previous=True)


def test_a_run_that_ended_before_its_first_round_may_be_started_again(clock, tmp_path, whole):
    grid = federation(clock, 6, fails)
    for client in grid.clients.values():
        client.train = kill
    with pytest.raises(Killed):
        play(grid, tmp_path / "cut")
    assert_alike(play(federation(clock, 6, fails), tmp_path / "cut"), whole)


def kill(*arguments):
    raise Killed


@pytest.mark.parametrize(
    "replies",
    [
        [],
        {"back_off": 3},
        {"back_off": {"rejections": {"0": "often"}}},
        {"history": {"norms": {"clients": ["0"], "values": []}}},
        {"history": {"norms": {"clients": 1}}},
        {"history": {"training": {"names": ["a"]}}},
        {"history": {"training": {"names": 7, "lengths": 7, "arrays": "", "metrics": ""}}},
    ],
)
def test_strange_memories_of_replies_are_refused_by_the_name_of_their_file(clock, folder, replies):
    state = load_checkpoint(folder, FLOWER_CHECKPOINT_PARTS)
    save_checkpoint(folder, {**state, "replies": replies})
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors must be a checkpoint of"):
        resume(clock, folder, rounds=6)
