"""How long rounds on Flower take: CohortStrategy beside stock FedAvg.

    python benchmarks/flower/bench.py [--quick] [--json]

Both strategies take turns in one run of the app beside this file, with the same clients. Needs
Linux and `pip install 'fedcohort[flower]'`; takes several minutes.
"""

import argparse
import json
import shutil
import sys
import tempfile
from itertools import chain
from pathlib import Path
from typing import Any

from fedcohort.bench.measurement import Row, describe_machine, make_row
from fedcohort.cli.console import print_json, print_table

QUICKSTART = Path(__file__).parents[2] / "examples" / "flower-quickstart"
sys.path.append(str(QUICKSTART))
from local_federation import LocalFederation  # noqa: E402

APP = Path(__file__).parent / "app"
SIMULATED: dict[str, Any] = {"clients": 100, "cohort": 20, "turns": 6, "rounds": 15}
DEPLOYED: dict[str, Any] = {"clients": 5, "cohort": 2, "turns": 3, "rounds": 5, "deadline": 60.0}
QUICK = {"turns": 2, "rounds": 4}
MODEL_SIZE = 1_600_000  # numbers: 6.4 MB, twice the network cifar-cnn
ENGINE = f"num-supernodes={SIMULATED['clients']} client-resources-num-cpus=1 init-args-num-cpus=2"
TIMEOUT = 900.0  # seconds


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        description="Time rounds of Flower with and without fedcohort."
    )
    parser.add_argument("--quick", action="store_true", help="measure fewer rounds")
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    options = parser.parse_args()

    rows = measure(options.quick)
    machine = describe_machine()
    if options.json:
        print_json({"command": "bench flower", "about": machine, "rows": rows})
    else:
        print_table(rows, f"bench flower: {machine}")


def measure(quick: bool = False) -> list[Row]:
    """Measure 100 simulated clients, and five real clients as processes of this machine."""
    changes = QUICK if quick else {}
    with tempfile.TemporaryDirectory() as folder:
        rows = measure_simulation(Path(folder) / "simulation", changes)
        rows += measure_deployment(Path(folder) / "deployment", changes)
    return rows


def measure_simulation(folder: Path, changes: dict[str, Any]) -> list[Row]:
    """Measure Flower's simulation engine with a tiny model and with one of 6.4 MB."""
    small = SIMULATED | changes
    large = small | {"numbers": MODEL_SIZE}
    engine = ("--federation-config", ENGINE)
    with LocalFederation(folder) as federation:
        federation.start_link("--simulation")
        rows = compare(federation, "simulation, 100 clients, k=20", small, *engine)
        rows += compare(federation, "the same, model of 6.4 MB", large, *engine)
    return rows


def measure_deployment(folder: Path, changes: dict[str, Any]) -> list[Row]:
    """Measure a SuperLink with five SuperNodes."""
    with LocalFederation(folder) as federation:
        federation.start_link()
        for client in range(DEPLOYED["clients"]):
            federation.start_node(f"client-{client}", {"client-id": str(client)})
        return compare(federation, "deployment, 5 clients, k=2", DEPLOYED | changes)


def compare(
    federation: LocalFederation, name: str, config: dict[str, Any], *more: str
) -> list[Row]:
    """Run both strategies by turns; return their rounds and the ratio of each turn."""
    app = federation.folder / "app"
    out = federation.folder / "seconds.json"
    shutil.copytree(APP, app, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    run = federation.submit(app, {**config, "out": str(out)}, *more)
    status = federation.wait(run, TIMEOUT)
    if status != "finished:completed":
        log = federation.log("superlink")[-2000:]
        raise RuntimeError(f"the run must complete, got {status}; log of the SuperLink: {log}")

    seconds = json.loads(out.read_text())
    stock_turns = without_first_rounds(seconds["stock"])
    cohort_turns = without_first_rounds(seconds["cohort"])
    ratios = []
    for stock, cohort in zip(stock_turns, cohort_turns, strict=True):
        ratios.append(sum(cohort) / sum(stock))
    return [
        make_row(f"{name}: a round of stock FedAvg", "s", 1.0, flatten(stock_turns)),
        make_row(f"{name}: a round of CohortStrategy", "s", 1.0, flatten(cohort_turns)),
        make_row(f"{name}: CohortStrategy / stock", "×", 1.0, ratios),
    ]


def without_first_rounds(turns: list[list[float]]) -> list[list[float]]:
    """Drop the first round of each turn, which also finds the clients."""
    return [turn[1:] for turn in turns]


def flatten(turns: list[list[float]]) -> list[float]:
    """Return the seconds of all turns in one list."""
    return list(chain.from_iterable(turns))


if __name__ == "__main__":
    main()
