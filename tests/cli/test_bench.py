from fedcohort.bench import selection


def test_the_largest_federation_is_an_option_of_selection_alone(fedcohort):
    code, _, err = fedcohort("bench", "learning", "--largest", "1000")
    assert code == 2
    assert "name with --largest must be one of selection, got 'learning'" in err
    code, _, err = fedcohort("bench", "selection", "--largest", "10")
    assert code == 2
    assert "largest must be" in err


def test_the_curve_goes_by_tens_up_to_the_largest_federation(monkeypatch):
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
