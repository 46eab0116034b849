import numpy as np
import pytest
from page_text import chart_ids
from run_folders import write_comparison

from fedcohort.cli.pages import load_findings
from fedcohort.lab import folder as run_folder
from fedcohort.reports.html.page import page


def test_a_run_that_is_not_finished_is_shown_as_far_as_it_is(tmp_path):
    write_comparison(tmp_path, chunks=3)
    (tmp_path / "records" / "0000008.npz").unlink()
    findings = load_findings(tmp_path)
    assert "Not finished: 8 of 12 rounds are played." in findings.lead
    assert findings.kinds["iid data, paper rule"]["random"].accuracy.shape == (3, 8)


def test_the_lead_says_how_clients_fail_and_whether_seeds_are_several(tmp_path):
    write_comparison(tmp_path)
    assert load_findings(tmp_path).lead == [
        "Clients fail: by class, they answer 10%, 30%, 60%, 90% of the time. 3 seeds. Every scheme "
        "meets the same failures."
    ]


def test_there_is_a_table_per_kind_of_run_with_the_accuracy_and_its_spread(tmp_path):
    records = write_comparison(tmp_path)
    tables = load_findings(tmp_path).tables
    assert list(tables) == ["iid data, paper rule", "primary-label data, paper rule"]
    first = tables["iid data, paper rule"][0]
    final = records["accuracy"][-1, :3]
    assert list(first)[:2] == ["scheme", "final accuracy"]
    assert first["final accuracy"] == f"{final.mean():.3f} ± {final.std(ddof=1):.3f}"


def test_a_folder_of_an_older_version_has_a_page_without_what_it_did_not_keep(tmp_path):
    write_comparison(tmp_path, with_owners=False)
    for path in (tmp_path / "allocations").iterdir():
        path.unlink()
    (tmp_path / "environment.json").unlink()
    shown = chart_ids(page(load_findings(tmp_path)))
    assert {"probabilities", "owners"}.isdisjoint(shown)


def test_a_scheme_has_the_runs_of_its_own_rows_and_counts_valid_updates(tmp_path):
    records = write_comparison(tmp_path)
    records["arrived"] = np.ones_like(records["valid"])  # so that some updates were rejected
    run_folder.save_records(tmp_path, 0, records)
    scheme = load_findings(tmp_path).kinds["primary-label data, paper rule"]["random"]
    rows = [9, 10, 11]  # after the two partitions of e3cs-0.5 and the first of random
    assert not records["valid"].all()
    for seed, row in enumerate(rows):
        np.testing.assert_array_equal(scheme.successes[seed], records["valid"][:, row].sum(axis=1))
        np.testing.assert_array_equal(scheme.seconds[seed], records["seconds"][:, row])
        assert scheme.wasted[seed] == pytest.approx(sum(records["wasted_seconds"][:, row]))
