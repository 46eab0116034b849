"""Flower: rounds of CohortStrategy beside rounds of stock FedAvg, by turns in one run, with the same clients."""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from fedcohort.bench.machine import Row, machine, row
from fedcohort.flower.loopback import Loopback

APP = Path(__file__).parent / "flower_app"
SIMULATED: dict[str, Any] = {"clients": 100, "cohort": 20, "turns": 6, "rounds": 15}
DEPLOYED: dict[str, Any] = {"clients": 5, "cohort": 2, "turns": 3, "rounds": 5, "deadline": 60.0}
MODEL = (
    1_600_000  # numbers in the larger model: 6.4 MB, as the paper's network for CIFAR-10 has about
)


def flower(quick: bool = False) -> tuple[list[Row], str]:
    """Measure the simulation engine with 100 clients, and five real clients as processes of this machine."""
    fewer = {"turns": 2, "rounds": 4} if quick else {}
    with tempfile.TemporaryDirectory() as folder:
        with Loopback(Path(folder) / "simulation") as lab:
            lab.start_link("--simulation")
            engine = f"num-supernodes={SIMULATED['clients']} client-resources-num-cpus=1 init-args-num-cpus=2"
            rows = _compare(
                lab,
                "simulation, 100 clients, k=20",
                SIMULATED | fewer,
                "--federation-config",
                engine,
            )
            rows += _compare(
                lab,
                "the same, model of 6.4 MB",
                SIMULATED | {"numbers": MODEL} | fewer,
                "--federation-config",
                engine,
            )
        with Loopback(Path(folder) / "deployment") as lab:
            lab.start_link()
            for client in range(DEPLOYED["clients"]):
                lab.start_node(f"client-{client}", {"client-id": str(client)})
            rows += _compare(lab, "deployment, 5 clients, k=2", DEPLOYED | fewer)
    return rows, machine()


def _compare(lab: Loopback, name: str, config: dict[str, Any], *more: str) -> list[Row]:
    """Run both by turns and return rounds and their ratio, turn by turn."""
    app, out = lab.folder / "app", lab.folder / "seconds.json"
    shutil.copytree(APP, app, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    run = lab.submit(app, {**config, "out": str(out)}, *more)
    ended = lab.wait(run, 900.0)
    if ended != "finished:completed":
        raise RuntimeError(
            f"the run must complete, got {ended}; the SuperLink says: {lab.log('superlink')[-2000:]}"
        )
    turns = {
        who: [turn[1:] for turn in times] for who, times in json.loads(out.read_text()).items()
    }
    flat = {who: [second for turn in times for second in turn] for who, times in turns.items()}
    ratios = [
        sum(ours) / sum(stock) for ours, stock in zip(turns["cohort"], turns["stock"], strict=True)
    ]
    return [
        row(f"{name}: a round of stock FedAvg", "s", 1.0, flat["stock"]),
        row(f"{name}: a round of CohortStrategy", "s", 1.0, flat["cohort"]),
        row(f"{name}: CohortStrategy / stock", "×", 1.0, ratios),
    ]
