import pytest

from fedcohort.selection.quotas import constant, cosine, linear, step


def test_a_constant_quota_never_changes():
    assert [constant(0.8)(t) for t in (0, 1, 10**6)] == [0.8] * 3


def test_a_step_switches_at_its_round_and_not_before():
    quota = step(at=625)
    assert (quota(0), quota(624), quota(625), quota(2499)) == (0.0, 0.0, 1.0, 1.0)
    assert [step(2, before=0.9, after=0.1)(t) for t in range(4)] == [0.9, 0.9, 0.1, 0.1]
    assert step(0)(0) == 1.0


def test_a_linear_quota_reaches_its_end_in_the_last_round_and_stays():
    quota = linear(5)
    assert [quota(t) for t in range(7)] == pytest.approx([0, 0.25, 0.5, 0.75, 1, 1, 1], abs=1e-15)
    assert [linear(3, 0.8, 0.2)(t) for t in range(3)] == pytest.approx([0.8, 0.5, 0.2], abs=1e-15)


def test_a_cosine_quota_is_slow_at_both_ends():
    quota = cosine(5)  # (1 - cos(pi t / 4)) / 2, and cos(pi / 4) = sqrt(2) / 2
    half_root = 2**0.5 / 2
    assert [quota(t) for t in range(6)] == pytest.approx(
        [0, (1 - half_root) / 2, 0.5, (1 + half_root) / 2, 1, 1], abs=1e-15
    )


@pytest.mark.parametrize("ramp", [linear, cosine])
def test_a_ramp_stays_within_its_ends_and_survives_a_single_round(ramp):
    assert all(0 <= ramp(97)(t) <= 1 for t in range(200))
    assert ramp(1, 0.25)(0) == 0.25


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: constant(1.1), r"fraction must be between 0\.0 and 1\.0, got 1\.1"),
        (lambda: step(-1), r"at must be a whole number at least 0, got -1"),
        (lambda: step(2.5), r"at must be a whole number at least 0, got 2\.5"),
        (lambda: step(1, before=-0.1), r"before must be between 0\.0 and 1\.0, got -0\.1"),
        (lambda: step(1, after=2), r"after must be between 0\.0 and 1\.0, got 2"),
        (lambda: linear(0), r"horizon must be a whole number at least 1, got 0"),
        (lambda: cosine(5, start=float("nan")), r"start must be between 0\.0 and 1\.0, got nan"),
        (lambda: linear(5, end=1.01), r"end must be between 0\.0 and 1\.0, got 1\.01"),
    ],
)
def test_bad_arguments_are_named_with_bound_and_value(make, message):
    with pytest.raises(ValueError, match=message):
        make()
