import numpy as np
import pytest

from fedcohort.flower.models import cast_model, distance, model_from_record, record_from_model

SENT = {
    "w": np.zeros((2, 3), dtype=np.float32),
    "b": np.zeros(3),
    "steps": np.array(5),
    "none": np.zeros((0, 4)),
}


def test_the_norm_is_over_all_arrays_together():
    moved = {
        "w": np.array([[3.0, 0, 0], [0, 0, 0]], dtype=np.float32),
        "b": np.array([0.0, 4.0, 0.0]),
        "steps": np.array(17),
    }
    assert distance({**SENT, **moved}, SENT) == 13.0  # 9 + 16 + 12 * 12 = 169


def test_the_norm_of_float32_is_taken_in_double_precision():
    huge = {"w": np.full(4, 1e30, dtype=np.float32)}
    assert distance(huge, {"w": np.zeros(4, dtype=np.float32)}) == pytest.approx(2e30, rel=1e-6)


def test_an_aggregate_gets_the_types_of_the_model_sent():
    sent = {
        "w": np.zeros(2, np.float32),
        "h": np.zeros(1, np.float16),
        "steps": np.zeros(2, int),
        "on": np.zeros(2, bool),
    }
    averaged = {
        "w": np.array([0.1, 2.0]),
        "h": np.array([0.5]),
        "steps": np.array([1.6, -0.6]),
        "on": np.array([0.7, 0.2]),
    }
    new = cast_model(averaged, sent)
    assert {name: array.dtype for name, array in new.items()} == {
        name: array.dtype for name, array in sent.items()
    }
    assert new["w"].tolist() == [np.float32(0.1), 2.0]
    assert new["h"].tolist() == [0.5]
    assert new["steps"].tolist() == [2, -1]
    assert new["on"].tolist() == [True, False]


def test_an_aggregate_of_the_right_type_is_not_copied():
    given = {"w": np.ones(2)}
    assert cast_model(given, {"w": np.zeros(2)})["w"] is given["w"]


def test_a_model_comes_back_from_a_record_to_the_bit():
    back = model_from_record(record_from_model(SENT))
    assert list(back) == list(SENT)
    assert all(
        back[name].dtype == SENT[name].dtype and np.array_equal(back[name], SENT[name])
        for name in SENT
    )
    assert back["steps"].shape == ()


def test_the_norm_of_an_array_in_another_memory_order_is_the_same():
    values = np.arange(6.0).reshape(2, 3)
    moved = {"w": np.asfortranarray(values + 2.0)}
    assert distance(moved, {"w": values}) == pytest.approx(np.sqrt(24))


def test_the_norm_counts_the_imaginary_part():
    assert distance({"w": np.array([3 + 4j])}, {"w": np.array([0j])}) == 5.0


def test_a_distance_too_large_for_a_float_is_infinite():
    assert distance({"w": np.array([1.5e308])}, {"w": np.array([-1.5e308])}) == np.inf


@pytest.mark.parametrize(
    ("value", "dtype"), [(2.0**63, np.int64), (-(2.0**64), np.int64), (256.0, np.uint8)]
)
def test_whole_numbers_that_do_not_fit_are_an_error(value, dtype):
    with pytest.raises(ValueError, match="do not fit into"):
        cast_model({"n": np.array([value])}, {"n": np.array([0], dtype)})
    kept = cast_model({"n": np.array([255.0])}, {"n": np.array([0], np.uint8)})
    assert kept["n"].tolist() == [255]
