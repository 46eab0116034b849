import re
from pathlib import Path
from typing import Any

import numpy as np

README = Path(__file__).parents[1] / "README.md"


def run_block(place: int) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(
        compile(
            re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)[place],
            str(README),
            "exec",
        ),
        names,
    )
    return names


def test_the_loop_of_the_readme_runs_and_learns_who_answers():
    names = run_block(0)
    weights = np.asarray(names["selector"].log_weights)
    assert weights[75:].mean() > weights[:25].mean()


def test_the_two_lines_on_flower_make_a_strategy_and_an_app():
    from flwr.clientapp import ClientApp
    from flwr.serverapp.strategy import Strategy

    names = run_block(1)
    assert isinstance(names["strategy"], Strategy)
    assert isinstance(names["app"], ClientApp)
    assert names["strategy"].deadline == 60.0


def test_files_the_readme_points_to_exist():
    text = README.read_text()
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target]
    assert targets
    assert [target for target in targets if not (README.parent / target).exists()] == []


def test_as_many_selectors_are_registered_as_the_table_of_frameworks_says():
    from fedcohort import SELECTORS

    assert int(re.search(r"one of (\d+) selectors", README.read_text())[1]) == len(SELECTORS)


def test_the_files_that_state_the_version_agree():
    from fedcohort import __version__

    assert f"\nversion: {__version__}\n" in (README.parent / "CITATION.cff").read_text()
