from dataclasses import replace

import numpy as np
import pytest
from page_text import chart_ids
from run_folders import SMALL, write_comparison

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
        "Clients fail: by class, they answer 10\u00a0%, 30\u00a0%, 60\u00a0%, 90\u00a0% "
        "of the time. 3 seeds. Every scheme "
        "meets the same failures."
    ]


def test_there_is_a_table_per_kind_of_run_with_the_accuracy_and_its_spread(tmp_path):
    records = write_comparison(tmp_path)
    tables = load_findings(tmp_path).tables
    assert sorted(tables) == ["iid data, paper rule", "primary-label data, paper rule"]
    first = tables["iid data, paper rule"][0]
    final = records["accuracy"][-1, :3]
    assert list(first)[:2] == ["scheme", "final accuracy"]
    assert first["final accuracy"] == f"{final.mean():.3f} ± {final.std(ddof=1):.3f}"


def test_a_folder_of_an_older_version_has_a_page_without_what_it_did_not_keep(tmp_path):
    write_comparison(tmp_path, with_owners=False)
    for path in (tmp_path / "allocations").iterdir():
        path.unlink()
    (tmp_path / "environment.json").unlink()
    (tmp_path / "classes.npz").unlink()
    records = run_folder.load_records(tmp_path)
    del records["class_accuracy"], records["label_accuracy"]
    run_folder.save_records(tmp_path, 0, records)
    text = page(load_findings(tmp_path))
    assert {"probabilities", "owners", "left-out", "worst"}.isdisjoint(chart_ids(text))
    assert "worst class" not in text


def test_who_is_left_out_is_told_in_words_in_the_table_and_in_a_figure(tmp_path):
    records = write_comparison(tmp_path)
    findings = load_findings(tmp_path)
    assert findings.class_rates == (0.1, 0.3, 0.6, 0.9)
    scheme = findings.kinds["primary-label data, paper rule"]["random"]
    np.testing.assert_array_equal(scheme.class_accuracy, records["class_accuracy"][-1, 9:12])
    means = records["class_accuracy"][-1, 9:12].astype(float).mean(axis=0)
    row = findings.tables["primary-label data, paper rule"][1]
    assert row["worst class"] == pytest.approx(means.min())
    assert row["gap"] == pytest.approx(100 * (means.max() - means.min()))
    assert "worst label" not in row
    text = page(findings)
    assert "Who is left out" in text
    assert "are served worst" in text


def test_who_is_asked_is_told_by_how_often_the_classes_answer_in_their_world(tmp_path):
    write_comparison(tmp_path, replace(SMALL, world="groups", world_options=("up=0.5",)))
    run_folder.save_class_rates(tmp_path, np.array([0.05, 0.15, 0.3, 0.45]))
    assert load_findings(tmp_path).rates == (0.05, 0.15, 0.3, 0.45)
    (tmp_path / "classes.npz").unlink()
    assert load_findings(tmp_path).rates == SMALL.rates


def test_success_rates_of_other_classes_than_the_records_are_refused(tmp_path):
    write_comparison(tmp_path)
    run_folder.save_class_rates(tmp_path, np.array([0.1, 0.9]))
    with pytest.raises(ValueError, match=r"classes\.npz must hold the success rates of 4 classes"):
        load_findings(tmp_path)
    np.savez(tmp_path / "classes.npz", rates=np.array(["x"]))
    with pytest.raises(ValueError, match=r"classes\.npz must"):
        load_findings(tmp_path)


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
