"""The rules of `fedcohort.aggregation` on Flower's models."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedcohort.flower.aggregation import apply_weights, data_shares
from fedcohort.flower.models import cast_model, record_from_model

QUICK = settings(max_examples=150, deadline=None)
paper = partial(apply_weights, normalises=False)
WHOLE = st.integers(-1000, 1000)


@QUICK
@given(
    mine=st.lists(WHOLE, min_size=1, max_size=4),
    clients=st.lists(
        st.tuples(st.lists(WHOLE, min_size=4, max_size=4), st.integers(1, 50)), max_size=5
    ),
    absent=st.integers(0, 100),
)
def test_the_paper_aggregation_is_that_of_exact_arithmetic(mine, clients, absent):
    size, total = len(mine), sum(examples for _, examples in clients) + absent
    exact = [
        Fraction(own)
        + sum((Fraction(n, total) * (theirs[at] - own) for theirs, n in clients), Fraction(0))
        for at, own in enumerate(mine)
    ]
    shares = np.zeros(0)
    if clients:
        shares = data_shares([*(n for _, n in clients), absent])[:-1]
    got = paper(
        {"w": np.array(mine, float)},
        [{"w": np.array(theirs[:size], float)} for theirs, _ in clients],
        shares,
    )["w"]
    assert got == pytest.approx([float(value) for value in exact], rel=1e-12, abs=1e-9)


@given(
    array=hnp.arrays(
        st.sampled_from([np.float32, np.float64, np.int64, np.uint8, np.float16, np.bool_]),
        hnp.array_shapes(min_dims=0),
    )
)
@QUICK
def test_if_none_arrived_the_model_stays_to_the_bit(array):
    array = np.where(np.isfinite(array), array, 0).astype(array.dtype)
    kept = paper({"w": array}, [], np.zeros(0))["w"]
    assert kept.dtype == array.dtype
    assert kept.shape == array.shape
    assert np.array_equal(kept, array)


def test_integers_stay_integers_and_are_rounded():
    model = {"steps": np.array([10, 10, 10]), "small": np.array(3, dtype=np.uint8)}
    trained = [{"steps": np.array([20, 12, 7]), "small": np.array(7, dtype=np.uint8)}]
    new = paper(model, trained, np.array([0.3]))
    assert new["steps"].dtype == np.int64
    assert new["steps"].tolist() == [13, 11, 9]  # 10 + 3, 10 + 0.6, 10 - 0.9
    assert new["small"].dtype == np.uint8
    assert new["small"] == 4  # 3 + 1.2


def test_whole_numbers_beyond_the_precision_of_floats_stay_exact():
    big = np.array([2**53 + 1, 2**62 + 1])
    assert paper({"steps": big}, [{"steps": big}, {"steps": big + 2}], np.array([0.5, 0.5]))[
        "steps"
    ].tolist() == [
        2**53 + 2,
        2**62 + 2,
    ]


SMALL = st.lists(st.integers(0, 255), min_size=3, max_size=3)


@QUICK
@given(mine=SMALL, theirs=SMALL, signed=st.booleans())
def test_whole_numbers_of_a_short_type_do_not_wrap_around(mine, theirs, signed):
    offset, dtype = (128, np.int8) if signed else (0, np.uint8)
    mine, theirs = (np.array(values) - offset for values in (mine, theirs))
    new = paper({"w": mine.astype(dtype)}, [{"w": theirs.astype(dtype)}], np.array([0.5]))["w"]
    assert new.dtype == dtype
    assert np.abs(new.astype(float) - (mine + theirs) / 2).max() <= 0.5


def test_flags_are_averaged_and_rounded():
    model = {"on": np.array([True, True, False, False])}
    trained = [{"on": np.array([True, False, True, False])}]
    assert paper(model, trained, np.array([0.75]))["on"].tolist() == [True, False, True, False]
    assert paper(model, trained, np.array([0.25]))["on"].tolist() == [True, True, False, False]


def test_a_flag_that_moves_beyond_its_range_stays_at_its_end():
    # False + 3 and True - 3.
    model, trained = {"on": np.array([False, True])}, [{"on": np.array([True, False])}]
    assert paper(model, trained, np.array([3.0]))["on"].tolist() == [True, False]


@pytest.mark.parametrize(
    ("dtype", "mine", "theirs", "weight", "number"),
    [
        (np.uint8, 250, 255, 3.0, 265),
        (np.uint8, 5, 0, 3.0, -10),
        (np.int8, -100, -120, 2.0, -140),
        (np.int64, 0, 2**62, 3.0, 3 * 2**62),
        (np.uint64, 2**63, 0, 2.0, -(2**63)),
    ],
)
def test_a_whole_number_that_leaves_its_type_is_an_error(dtype, mine, theirs, weight, number):
    assert mine + weight * (theirs - mine) == number
    with pytest.raises(ValueError, match="do not fit into"):
        paper(
            {"n": np.array([mine], dtype)}, [{"n": np.array([theirs], dtype)}], np.array([weight])
        )


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize(
    ("dtype", "mine", "theirs", "weight", "number"),
    [
        (np.uint8, 250, 255, 1.0, 255),
        (np.int64, 2**63 - 1, 2**63 - 1, 0.5, 2**63 - 1),
        (np.int64, 2**63 - 1, 2**63 - 1 - 2**12, 1.0, 2**63 - 1 - 2**12),
        (np.uint64, 2**64 - 1, 2**64 - 1, 0.5, 2**64 - 1),
        (np.uint64, 2**63, 2**63 - 6, 0.5, 2**63 - 3),
    ],
)
def test_whole_numbers_at_the_end_of_their_type_stay_exact(
    dtype, mine, theirs, weight, number, shape
):
    sent, returned = (np.full(shape, value, dtype) for value in (mine, theirs))
    new = paper({"n": sent}, [{"n": returned}], np.array([weight]))["n"]
    assert (new.dtype, new.shape) == (dtype, shape)
    assert int(new.item()) == number


def test_half_of_a_very_long_way_is_taken_and_does_not_wrap_around():
    # From -10 half way to 2**63 - 1 is 2**62 - 5.5; floats there are 512 apart.
    far = {"n": np.array([2**63 - 1])}
    new = paper({"n": np.array([-10])}, [far], np.array([0.5]))["n"]
    assert abs(int(new[0]) - (2**62 - 5)) <= 512


@pytest.mark.parametrize(
    ("dtype", "one", "other", "mean"), [(np.uint64, 7, 3, 5), (np.complex64, 2j, 4 + 0j, 2 + 1j)]
)
def test_numbers_of_rare_types_are_averaged_too(dtype, one, other, mean):
    new = paper({"w": np.array([one], dtype)}, [{"w": np.array([other], dtype)}], np.array([0.5]))[
        "w"
    ]
    assert new.dtype == dtype
    assert new.tolist() == [mean]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_an_array_without_axes_stays_one(dtype):
    """As BatchNorm's num_batches_tracked is."""
    one, two, half = np.array(1, dtype), np.array(2, dtype), np.array(1.6)
    averaged = paper({"steps": one}, [{"steps": two}], np.array([1.0]))
    for new, value in (
        (averaged, 2),
        (cast_model({"steps": half}, {"steps": one}), 1.6 if dtype != np.int64 else 2),
    ):
        assert isinstance(new["steps"], np.ndarray)
        assert new["steps"].dtype == dtype
        assert new["steps"] == pytest.approx(value)
        record_from_model(new)


def test_float32_stays_float32():
    new = paper(
        {"w": np.ones(2, dtype=np.float32)}, [{"w": np.zeros(2, dtype=np.float32)}], np.array([0.5])
    )
    assert new["w"].dtype == np.float32
    assert new["w"].tolist() == [0.5, 0.5]


def test_those_who_never_declared_examples_count_as_the_mean_of_the_others():
    # known 10 + 30, two unknown at the mean of 20: 80 in all
    assert data_shares([10, 30, None, None]).tolist() == [10 / 80, 30 / 80, 20 / 80, 20 / 80]
    assert data_shares([10]).tolist() == [1.0]
    assert data_shares([10, None]).tolist() == [0.5, 0.5]


def test_if_nobody_declared_examples_all_shares_are_equal():
    assert data_shares([None, None, None, None]).tolist() == [0.25] * 4
    assert data_shares([]).tolist() == []
