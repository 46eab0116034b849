from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made import TINY, result

from fedcohort.cli.pages import load_findings
from fedcohort.lab.archive import gather_results, save
from fedcohort.paper import reproduce
from fedcohort.paper.export import export
from fedcohort.paper.page import group_runs, make_findings, read_findings, save_request
from fedcohort.paper.results import Results, read_results
from fedcohort.reports.html.page import page, page_charts
from fedcohort.reports.report import Report

pytestmark = pytest.mark.usefixtures("scratch")


def test_a_page_of_results_from_elsewhere_can_be_written_again():
    reproduce.run(["table3"], Path("run"), **TINY)
    export(read_results(Path("run"), {}), Path("small"))
    small = {name: value for name, value in TINY.items() if name in ("dataset", "rounds")}
    done = reproduce.show(["table3"], Path("small"), **small)
    save_request(Path("shown"), ["table3"], small, Path("small"))
    again = read_findings(Path("shown"))
    assert again.kinds.keys() == make_findings(done).kinds.keys() != set()


def test_what_was_just_trained_is_shown_though_others_are_more_common():
    reproduce.run(["table3"], Path("run"), **TINY)
    for number in (1, 2):  # carried from a GPU
        results = [
            replace(
                one, config=replace(one.config, precision="bf16", device="cuda", first_seed=number)
            )
            for one in gather_results(Path("run"))
        ]
        save(Path(f"run/runs-{number}.npz"), results)
    found = (
        reproduce.run(["table3"], Path("run"), **TINY).reports["table3"].tables["non-iid, FedAvg"]
    )
    assert {row["scheme"]: row["runs"] for row in found if row["runs"]} == {
        "E3CS-inc": 1,
        "Random": 1,
        "pow-d": 1,
    }
    done = reproduce.run(["table3"], Path("run"), **TINY)
    save_request(Path("run"), ["table3"], done.overrides)
    tables = read_findings(Path("run")).tables
    (shown,) = [rows for title, rows in tables.items() if title.endswith("non-iid, FedAvg")]
    assert all(title.startswith("As Table III, on other data: digits") for title in tables)
    assert list(shown) == list(
        done.reports["table3"].tables["non-iid, FedAvg"]
    )  # on the page that is drawn again, too


def test_runs_on_other_data_than_the_reports_are_about_are_left_out():
    on_cifar = result(accuracy=(0.1, 0.2))
    of_figure7 = result(accuracy=(0.2, 0.3), cohort=10)
    on_digits = result(accuracy=(0.3,), dataset="digits", model="mlp")
    results = Results([on_cifar, of_figure7, on_digits])

    def kinds(*names, **overrides):
        reports = dict.fromkeys(names, Report("x", "X", {}))
        findings = make_findings(reproduce.Reproduction(reports, results, overrides))
        return {kind.partition(", iid")[0] for kind in findings.kinds}

    assert kinds("table3") == {"cifar10, k=20"}
    assert kinds("figure7") == kinds("figure3") == {"cifar10, k=10", "cifar10, k=20"}
    assert kinds("table3", dataset="digits") == {"digits, k=20"}
    everything = {"cifar10, k=10", "cifar10, k=20", "digits, k=20"}
    assert kinds() == kinds("table2") == everything  # none of its own


def test_federations_of_different_size_have_a_page_without_classes(tmp_path):
    save(
        tmp_path / "runs-cifar10.npz",
        [result(accuracy=(0.1, 0.5), clients=clients, cohort=4) for clients in (20, 36)],
    )
    found = load_findings(tmp_path)
    assert found.classes is None
    assert len(found.kinds) == 2
    assert page(found)


def test_a_reproduction_has_a_page_with_its_tables_and_its_kinds_of_runs(tmp_path):
    runs = [
        result(
            accuracy=(0.1, 0.5),
            selectors=(name,),
            first_seed=seed,
            partitions=(partition,),
            rounds=rounds,
        )
        for name, seed, partition, rounds in (
            ("random", 0, "iid", 2),
            ("random", 1, "iid", 2),
            ("fedcs", 0, "iid", 2),
            ("fedcs", 0, "shards", 3),
        )
    ]
    save(tmp_path / "runs-cifar10.npz", runs)
    save_request(tmp_path, ["table3"], {"rounds": 2})
    found = load_findings(tmp_path)
    assert {title.split(",")[0] for title in found.tables} == {"Table III: cifar10"}
    for reading in ("As printed", "Best-fitting"):
        assert sum(f"{reading}: " in title for title in found.tables) >= 4
    iid, shards = found.kinds.values()
    assert {name: one.accuracy.shape for name, one in iid.items()} == {
        "random": (2, 2),
        "fedcs": (1, 2),
    }
    np.testing.assert_array_equal(
        np.isnan(shards["fedcs"].accuracy), [[False, False, True]]
    )  # one round is still to come
    assert "4 training runs are at hand, 1 of them not finished." in found.lead
    assert iid["random"].rounds_to(0.5).tolist() == [2, 2]
    assert "accuracy-rounds" in [chart.id for chart in page_charts(found)]


def test_a_target_that_is_met_exactly_is_met_on_the_page_too_though_kept_in_float32():
    (kind,) = group_runs([result(accuracy=(0.1, 0.45, 0.65, 0.7))])[0].values()
    assert [kind["random"].rounds_to(target).tolist() for target in (0.45, 0.65)] == [[2], [3]]


def test_kinds_of_runs_are_told_apart_by_what_differs():
    steps = [result(aggregations=("normalised",), server_rate=rate) for rate in (1.0, 0.095)]
    dealt = [result(partitions=("primary-label",), refill=refill) for refill in (True, False)]
    lengths = [result(accuracy=(0.1,) * rounds, partitions=("shards",)) for rounds in (2, 3)]
    found, _ = group_runs([*steps, *dealt, *lengths])
    assert list(found) == [
        "cifar10, k=20, iid data, normalised rule, mu 0, successive",
        "cifar10, k=20, iid data, normalised rule, mu 0, successive, server rate 0.095",
        "cifar10, k=20, primary-label data, paper rule, mu 0, successive, refill True",
        "cifar10, k=20, primary-label data, paper rule, mu 0, successive, refill False",
        "cifar10, k=20, shards data, paper rule, mu 0, successive, rounds 2",
        "cifar10, k=20, shards data, paper rule, mu 0, successive, rounds 3",
    ]
