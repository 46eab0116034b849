"""Two generations of checkpoints, and what happens when one is damaged or lost."""

import json
import os
import re

import numpy as np
import pytest

from fedcohort.files import load_state
from fedcohort.lab import folder as run_folder
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.lockstep import Lockstep
from fedcohort.selection.random import Random


def trial_state(round):
    """Return a small state as a comparison writes it."""
    selectors = Lockstep([E3CS(6, 2, rng=[0]), Random(6, 2, rng=[0])], [1, 1])
    return {
        "round": round,
        "mode": "together",
        "slots": 2,
        "engine": {
            "models": np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3) + round,
            "velocity": np.zeros((2, 3), np.float32),
        },
        "selectors": selectors.state_dict(),
    }


def flower_state(round):
    """Return a small state as a Flower run writes it."""
    return {
        "round": round,
        "model": {"w": np.arange(4.0).reshape(2, 2) + round, "b": np.zeros(1)},
        "selector": E3CS(6, 2, rng=0).state_dict(),
        "registry": {"clients": ["a", "b"]},
        "strategy": {"0": {"m_t": {"list": {"0": np.ones(2)}}}},
        "totals": {"asked": {"a": round}, "sent": round, "arrived": 0},
    }


KINDS = {
    "comparison": (trial_state, run_folder.load_comparison_checkpoint),
    "flower": (flower_state, run_folder.load_flower_checkpoint),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def folder(tmp_path, kind):
    """Hold the checkpoints of rounds 4 and 2."""
    make, _ = KINDS[kind]
    for round in (2, 4):
        run_folder.save_checkpoint(tmp_path, make(round))
    return tmp_path


def last(folder):
    return folder / "checkpoint.safetensors"


def flip(path, place=0.5):
    """Flip one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 8
    path.write_bytes(content)
    return bytes(content)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def is_same(found, expected):
    if isinstance(expected, dict):
        if list(found) != list(expected):
            return False
        return all(is_same(found[key], expected[key]) for key in expected)
    if isinstance(expected, np.ndarray):
        return found.dtype == expected.dtype and np.array_equal(found, expected)
    return found == expected


@pytest.mark.slow
@every_kind
def test_a_flipped_bit_is_refused_by_name_wherever_it_is(folder, kind):
    """Every bit of the names and shapes at the beginning, then one of every byte."""
    _, load = KINDS[kind]
    whole = last(folder).read_bytes()
    size = 8 + int.from_bytes(whole[:8], "little")  # of the header of a safetensors file
    assert 8 < size < len(whole)
    for place in range(len(whole)):
        for bit in range(8) if place < size else [place % 8]:
            write_byte(last(folder), place, whole[place] ^ 1 << bit)
            with pytest.raises(ValueError, match=re.escape(str(last(folder)))):
                load(folder)
        write_byte(last(folder), place, whole[place])
    assert last(folder).read_bytes() == whole


def write_byte(path, place, value):
    """Replace a byte of a file where it is: to write the whole file takes far longer."""
    with path.open("r+b") as file:
        file.seek(place)
        file.write(bytes([value]))


@every_kind
def test_a_checkpoint_cut_at_any_byte_is_refused_by_name(folder, kind):
    _, load = KINDS[kind]
    for size in reversed(range(last(folder).stat().st_size)):
        os.truncate(last(folder), size)
        with pytest.raises(ValueError, match=r"checkpoint\.safetensors must be a checkpoint"):
            load(folder)


@every_kind
def test_a_damaged_checkpoint_is_named_with_the_way_out_and_left_alone(folder, kind):
    _, load = KINDS[kind]
    flip(last(folder))
    before = contents(folder)
    with pytest.raises(
        ValueError,
        match=rf"{last(folder)} must be a checkpoint of fedcohort, got: a file that is damaged .*; "
        r"--from-previous \(on Flower from_previous=True\) goes on .* after round 2",
    ):
        load(folder)
    assert contents(folder) == before


@every_kind
def test_a_damaged_checkpoint_is_set_aside_and_the_one_before_takes_its_place(folder, kind):
    make, load = KINDS[kind]
    for number in (1, 2):
        damaged = flip(last(folder))
        aside = run_folder.recover_checkpoint(folder)
        assert aside == folder / f"checkpoint.damaged-{number}.safetensors"
        assert aside.read_bytes() == damaged
        assert is_same(load(folder), make(2))


@every_kind
def test_a_lost_checkpoint_is_refused_by_name_and_the_one_before_used_when_asked_to(folder, kind):
    make, load = KINDS[kind]
    last(folder).unlink()
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors must be .*no such file; --from"):
        load(folder)
    assert run_folder.recover_checkpoint(folder) is None
    assert is_same(load(folder), make(2))


@every_kind
def test_a_good_checkpoint_stays_when_the_one_before_is_asked_for(folder, kind):
    make, load = KINDS[kind]
    assert run_folder.recover_checkpoint(folder) is None
    assert is_same(load(folder), make(4))


@every_kind
def test_two_damaged_checkpoints_are_refused_and_left_alone(folder, kind):
    _, load = KINDS[kind]
    flip(last(folder))
    flip(folder / "checkpoint.previous.safetensors")
    before = contents(folder)
    with pytest.raises(ValueError, match="there is no good one before it"):
        load(folder)
    with pytest.raises(ValueError, match=r"checkpoint\.previous\.safetensors must be"):
        run_folder.recover_checkpoint(folder)
    assert contents(folder) == before


@every_kind
def test_a_checkpoint_that_is_damaged_while_the_run_goes_on_does_not_become_the_one_before(
    folder, kind
):
    make, _ = KINDS[kind]
    damaged = flip(last(folder))
    run_folder.save_checkpoint(folder, make(6))
    found = {path.name: path for path in folder.iterdir()}
    assert load_state(found["checkpoint.safetensors"])["round"] == 6
    assert load_state(found["checkpoint.previous.safetensors"])["round"] == 2
    assert found["checkpoint.damaged-1.safetensors"].read_bytes() == damaged


@every_kind
def test_a_second_checkpoint_of_a_round_leaves_that_of_the_round_before(folder, kind):
    make, _ = KINDS[kind]
    run_folder.save_checkpoint(folder, make(4))
    assert load_state(folder / "checkpoint.previous.safetensors")["round"] == 2


@every_kind
@pytest.mark.parametrize("round", ["4", 4.0, None, -1, True, [4]])
def test_a_round_that_is_no_number_is_refused_by_name(tmp_path, kind, round):
    make, load = KINDS[kind]
    run_folder.save_checkpoint(tmp_path, {**make(1), "round": round})
    with pytest.raises(ValueError, match=r"round in .*checkpoint\.safetensors must be a whole"):
        load(tmp_path)


@pytest.mark.parametrize("part", ["model", "selector", "registry", "strategy", "totals"])
def test_a_part_of_a_flower_run_that_is_no_table_is_refused_by_name(tmp_path, part):
    run_folder.save_checkpoint(tmp_path, {**flower_state(1), part: [1]})
    with pytest.raises(ValueError, match=rf"{part} in .*checkpoint\.safetensors must be a table"):
        run_folder.load_flower_checkpoint(tmp_path)


def test_records_without_any_checkpoint_are_refused_by_name(tmp_path):
    run_folder.save_records(tmp_path, 0, {"accuracy": np.zeros((1, 1))})
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors must be there to go on"):
        run_folder.load_comparison_checkpoint(tmp_path)


def test_a_checkpoint_from_before_there_were_checksums_is_read(tmp_path):
    from safetensors.numpy import save_file

    save_file({}, str(last(tmp_path)), metadata={"state": json.dumps({"round": 3})})
    assert run_folder.load_checkpoint(tmp_path) == {"round": 3}
    run_folder.save_checkpoint(tmp_path, {"round": 4})
    assert load_state(tmp_path / "checkpoint.previous.safetensors") == {"round": 3}
