import pytest

from fedcohort import memory
from fedcohort.bench import selection


def test_the_largest_federation_is_an_option_of_selection_alone(fedcohort):
    code, _, err = fedcohort("bench", "learning", "--largest", "1000")
    assert code == 2
    assert "name with --largest must be one of selection, got 'learning'" in err
    code, _, err = fedcohort("bench", "selection", "--largest", "10")
    assert code == 2
    assert "largest must be" in err


@pytest.mark.parametrize(("largest", "clients"), [(99_999, 10_000), (10**14, 10**14)])
def test_a_federation_that_does_not_fit_is_refused_before_anything_is_measured(
    fedcohort, monkeypatch, largest, clients
):
    def fail(*sizes, **more):
        raise AssertionError("nothing must be measured")

    monkeypatch.setattr(selection, "measure_lock_step", fail)
    monkeypatch.setattr(selection, "measure_large_round", fail)
    available = 60 * clients - 1
    monkeypatch.setattr(memory, "available_memory", lambda: available)
    code, _, err = fedcohort("bench", "selection", "--largest", str(largest))
    assert code == 2
    assert err == (
        f"error: largest must fit the {available:,} bytes of memory that are available, got "
        f"{largest:,} clients, which need at least {60 * clients:,} bytes\n"
    )


def test_the_curve_goes_by_tens_up_to_the_largest_federation(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 60 * 10**8)
    measured = []
    monkeypatch.setattr(selection, "measure_lock_step", lambda *sizes, **more: {})
    monkeypatch.setattr(
        selection, "measure_large_round", lambda *sizes: measured.append(sizes) or []
    )
    selection.measure_selection(largest=10**8)
    assert [sizes[:2] for sizes in measured] == [
        (10**3, 10**2),
        (10**4, 10**3),
        (10**5, 10**4),
        (10**6, 10**4),
        (10**7, 10**4),
        (10**8, 10**4),
    ]


def test_where_torch_cannot_draw_a_row_says_its_limit(monkeypatch):
    monkeypatch.setattr(selection, "MOST_OF_TORCH", 999)
    rows = selection.measure_large_round(1000, 10, repeats=1)
    assert [row["what"] for row in rows] == [
        "K=1,000, k=10: one whole round",
        "K=1,000, k=10: torch.multinomial draws from at most 999",
    ]
    assert rows[1]["n"] == 0
    assert rows[1]["median"] is None
