from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcohort.lab.parts import AXES, part_folder, remaining_parts, split_into_blocks
from fedcohort.lab.result import identity, single_run
from fedcohort.lab.runs import RunKey, run_keys
from fedcohort.paper.setting import task_config

EVERY = [
    RunKey(*row)
    for row in product(("a", "b", "c"), ("iid", "non"), ("paper",), (0.0, 0.5), (0, 1, 2, 5))
]


@given(st.sets(st.sampled_from(EVERY)))
@settings(deadline=None, derandomize=True, max_examples=100)
def test_blocks_are_full_products_that_hold_every_run_once(left):
    found = split_into_blocks(sorted(left, key=EVERY.index))
    assert sorted((place for block in found for place in block), key=EVERY.index) == sorted(
        left, key=EVERY.index
    )
    for block in found:
        axes = [sorted({getattr(place, axis) for place in block}) for axis in AXES]
        assert {RunKey(*row) for row in product(*axes)} == set(block)
        assert axes[-1] == list(range(axes[-1][0], axes[-1][-1] + 1))


def test_what_remains_of_a_table_goes_in_as_few_parts_as_there_are_kinds_of_it():
    of = task_config("cifar10", {"seeds": 2})
    assert remaining_parts(of, set()) == [of]
    finished = {
        identity(single_run(of, place))
        for place in run_keys(of)
        if place.mu == 0 and place.seed == 0
    }
    left = remaining_parts(of, finished)
    assert [(part.mus, part.first_seed, part.seeds) for part in left] == [
        ((0.5,), 0, 1),
        ((0.0, 0.5), 1, 1),
    ]
    assert remaining_parts(of, {identity(single_run(of, place)) for place in run_keys(of)}) == []


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"device": "cuda"}, True),
        ({"checkpoint_every": 7}, True),
        ({"targets": (0.1,)}, True),
        ({"mus": (0, 0.5)}, True),
        ({"rounds": 9}, False),
        ({"model": "mlp"}, False),
        ({"sampler": "systematic"}, False),
        ({"first_seed": 1}, False),
    ],
)
def test_a_part_has_the_folder_of_all_that_decides_its_results(change, same, tmp_path):
    of = task_config("cifar10", {})
    assert (part_folder(replace(of, **change), tmp_path) == part_folder(of, tmp_path)) is same
