"""A short run of every surface; `make fuzz` plays more than ten thousand cases."""

import pytest
from fuzz_cases import FAILURES, SILENT, Surface, play_case
from run_fuzz import all_surfaces

CASES = 40
SEED = 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", all_surfaces())
def test_strange_input_is_refused_in_one_line_or_accepted(tmp_path, name):
    surface = all_surfaces()[name]
    play = surface.prepare(tmp_path / "fuzz")
    failures = []
    for number in range(CASES):
        outcome, words = play_case(surface, play, SEED, number)
        if outcome in FAILURES and (outcome != SILENT or surface.sealed):
            failures.append(f"case {number}: {outcome}: {words}")
    assert failures == []


def _raise(error):
    raise error


@pytest.mark.parametrize(
    ("play", "expected"),
    [
        (lambda rng: None, "accepted"),
        (lambda rng: _raise(ValueError("seeds must be at least 1")), "refused"),
        (lambda rng: _raise(ValueError("two\nlines")), "unclear"),
        (lambda rng: _raise(ValueError()), "unclear"),
        (lambda rng: _raise(KeyError("seeds")), "traceback"),
    ],
)
def test_every_ending_is_told_apart(play, expected):
    surface = Surface("one", lambda folder: play, 1)
    assert play_case(surface, play, seed=0, number=0)[0] == expected
