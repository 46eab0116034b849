from dataclasses import replace
from pathlib import Path

import pytest
from made import TINY

from fedcohort.lab.archive import gather_results, save
from fedcohort.paper import reproduce
from fedcohort.paper.export import export
from fedcohort.paper.page import make_findings, read_findings, save_request
from fedcohort.paper.results import read_results

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
