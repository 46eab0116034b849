import numpy as np
from made import result

from fedcohort.paper.labels import describe_origin, format_amount

KEY = ("random", "iid", "paper", 0.0)
COST = {
    "part": "p1",
    "torch": "2.13.0",
    "runs": 2,
    "timed_rounds": 40,
    "seconds": 10.0,
    "client_steps": 5000,
}


def test_a_line_for_each_part_says_where_it_was_trained_and_what_that_took():
    small = {"model": "mlp", "dataset": "digits"}
    slow = [
        result(provenance=COST, first_seed=seed, compiled=True, **small) for seed in (0, 1)
    ]  # nothing is compiled on a CPU
    fast = [
        result(
            provenance={"part": "p2", "gpu": "H1"},
            device="cuda",
            precision="bf16",
            compiled=True,
            **small,
        ),
        result(provenance={"part": "p3"}, device="cuda", **small),
    ]
    assert describe_origin({KEY: slow}, {KEY: fast}) == [
        "p1: mlp, float32, on a CPU, torch 2.13.0. 2 runs, 40 rounds: 10 s, 500 client steps/s.",
        "p2: mlp, bf16, compiled, on H1.",
        "p3: mlp, float32, on a GPU.",
    ]


def test_halves_go_up_whether_or_not_the_number_below_is_even():
    assert [format_amount(number, 0.45) for number in (579.5, 580.5, 580.4)] == [
        "580",
        "581",
        "580",
    ]
    assert [format_amount(number, "final") for number in (0.66125, 0.66135)] == ["66.13", "66.14"]


def test_halves_of_accuracies_go_up_though_no_float_holds_them():
    # As doubles, and as the float32 in which records keep accuracies.
    for count in range(5, 100_000, 10):
        half = count / 100_000
        expected = f"{(count + 5) // 10 / 100:.2f}"
        assert format_amount(half, "final") == expected
        assert format_amount(float(np.float32(half)), "final") == expected
        assert format_amount(-half, "final") == f"{-(count // 10) / 100:.2f}"
    below = [0.00144999, 0.66124993, 0.99994993]
    assert [format_amount(number, "final") for number in below] == ["0.14", "66.12", "99.99"]
