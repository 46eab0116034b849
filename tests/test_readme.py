"""What the README shows is what the package does and what the committed results say."""

import csv
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
RESULTS = ROOT / "results"


def run_block(index: int) -> dict[str, Any]:
    """Run one Python block of the README and return its names."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(blocks[index], str(README), "exec"), names)
    return names


def table_after(text: str) -> dict[str, list[str]]:
    """Return the rows of the first table after some text: the first cell, then the others."""
    rest = README.read_text().split(text)[1]
    rows = re.search(r"\n((?:\|.*\n)+)", rest)[1].splitlines()
    cells = {}
    for row in rows[2:]:
        name, *values = (cell.strip() for cell in row.strip("|").split("|"))
        cells[re.sub(r"\[(.*?)\]\(.*?\)", r"\1", name)] = values
    return cells


def test_the_loop_of_the_readme_learns_who_answers():
    names = run_block(0)
    weights = np.asarray(names["selector"].log_weights)
    assert weights[75:].mean() > weights[:25].mean()


def test_the_loop_of_the_readme_has_at_most_ten_lines():
    block = re.search(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)[1]
    assert len([line for line in block.splitlines() if line.strip()]) <= 10


def test_the_two_lines_on_flower_make_a_strategy_and_an_app():
    from flwr.clientapp import ClientApp
    from flwr.serverapp.strategy import Strategy

    names = run_block(1)
    assert isinstance(names["strategy"], Strategy)
    assert isinstance(names["app"], ClientApp)
    assert names["strategy"].options.deadline == 60.0


@pytest.mark.slow
def test_the_table_of_the_simulation_is_what_the_simulation_gives():
    from fedcohort.lab.config import SimulationConfig
    from fedcohort.lab.simulation import simulate
    from fedcohort.lab.summary import simulation_rows

    table = table_after("## What you gain")
    config = SimulationConfig(selectors=tuple(name.lower() for name in table))
    requests = config.cohort * config.rounds
    for name, row in zip(table, simulation_rows(config, simulate(config)), strict=True):
        assert table[name] == [
            f"{100 * row['success ratio']:.1f} ± {100 * row['CEP sd'] / requests:.1f}",
            f"{row['Jain']:.3f}",
        ]


def test_the_table_of_speed_ups_is_that_of_the_committed_results():
    logs: dict[tuple[str, str], list[float]] = {}
    with (RESULTS / "digits/mlp/server_step/speed_up.csv").open() as file:
        for row in csv.DictReader(file):
            if row["partition"] == "iid":
                key = (row["selector"], row["rule"])
                logs.setdefault(key, []).append(float(row["log ratio"]))

    table = table_after("## Does it train faster?")
    assert len(table) == 3
    for name, cells in table.items():
        expected = []
        for rule in ("paper", "equalised"):
            values = logs[name.lower(), rule]
            ratio = math.exp(np.mean(values))
            error = ratio * np.std(values, ddof=1) / math.sqrt(len(values))
            expected.append(f"{ratio:.2f} ± {error:.2f}")
        assert cells == expected


def test_the_speed_ups_on_cifar10_are_at_most_those_of_the_committed_results():
    largest = {"equalised": 0.0, "normalised": 0.0}
    seeds = set()
    for network in ("cifar-cnn-pool3", "cifar-cnn-pool3-ceil-float32"):
        with (RESULTS / f"cifar10/{network}/server_step/speed_up.csv").open() as file:
            for row in csv.DictReader(file):
                if row["rule"] in largest:
                    ratio = math.exp(float(row["log ratio"]))
                    largest[row["rule"]] = max(largest[row["rule"]], ratio)
                    seeds.add(row["seed"])

    assert len(seeds) == 3
    equal, whole = largest.values()
    words = f"(three seeds) no run gains over {equal:.2f}× with equal steps, {whole:.2f}× with"
    assert words in " ".join(README.read_text().split())


def test_the_table_of_the_paper_is_that_of_the_committed_results():
    from fedcohort.paper.labels import rounded

    values: dict[tuple[str, str], dict[str, str]] = {}
    with (RESULTS / "cifar10/cifar-cnn-pool3-ceil/table3/table3.csv").open() as file:
        for row in csv.DictReader(file):
            is_shown = row["partition"] == "primary-label" and float(row["mu"]) == 0
            chose_nothing = row["worlds"] == "worlds that chose nothing"
            if is_shown and chose_nothing and row["reading"] == "Best-fitting":
                values[row["selector"], row["quantity"]] = row

    table = table_after("## The paper, reproduced")
    assert len(table) == 7
    for name, cells in table.items():
        rounds = values[name.lower(), "@45"]
        final = values[name.lower(), "final"]
        mean = rounded(float(rounds["mean"]), 0.45)
        assert cells == [
            f"{mean:.0f} ± {float(rounds['sd']):.0f}",
            f"{float(rounds['paper']):.0f}",
            f"{100 * float(final['mean']):.1f} ± {100 * float(final['sd']):.1f}",
            f"{100 * float(final['paper']):.1f}",
        ]


@pytest.mark.slow
def test_the_picture_is_drawn_again_with_the_numbers_of_its_captions(tmp_path):
    pytest.importorskip("matplotlib", reason="the picture needs pip install 'fedcohort[plots]'")
    out = tmp_path / "gain.svg"
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs/draw_gain.py"), str(out)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.read_text().startswith("<?xml")

    for page in (README, ROOT / "docs/index.md"):
        caption = re.search(r"!\[(.*?)\]\([^)]*gain\.svg\)", page.read_text())[1]
        stated = re.findall(r"(E3CS-0\.5 gets|Random) (\d+\.\d)", caption)
        assert len(stated) == 2, page
        for name, number in stated:
            assert f"{name.split()[0].lower()}: {number} of 20" in done.stdout, page


def test_the_study_has_as_many_worlds_as_the_readme_says():
    with (RESULTS / "study/runs.csv").open() as file:
        worlds = {row["world"] for row in csv.DictReader(file)}
    assert len(worlds) == 4
    assert "[four kinds of failure](results/what-helps.md)" in " ".join(README.read_text().split())


def test_files_the_readme_points_to_exist():
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", README.read_text())
    local = [target for target in targets if "://" not in target]
    assert local
    assert [target for target in local if not (ROOT / target).exists()] == []


def test_as_many_selectors_are_registered_as_the_table_of_frameworks_says():
    from fedcohort import SELECTORS

    text = (ROOT / "docs/concepts/other-frameworks.md").read_text()
    assert int(re.search(r"one of (\d+) selectors", text)[1]) == len(SELECTORS)


def test_the_files_that_state_the_version_agree():
    from fedcohort import __version__

    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
