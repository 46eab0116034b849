"""The server: both strategies by turns in one run, every round timed."""

import json
from pathlib import Path
from time import perf_counter

import numpy as np
from flwr.app import Array, ArrayRecord, Context
from flwr.app.user_config import UserConfig
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg, Strategy

from fedcohort.flower import CohortStrategy

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Write the seconds of all rounds of the strategies, turn by turn.

    A turn plays the strategies in the order of `strategies`. The file holds a list of turns for
    each strategy. Under `begin` it holds the seconds until the first round is over, and under
    `memory` the largest resident memory seen, in bytes.
    """
    config = context.run_config
    weights = np.zeros(int(config["numbers"]), dtype=np.float32)
    model = ArrayRecord({"w": Array(weights)})
    rounds = int(config["rounds"])

    names = str(config["strategies"]).split()
    seconds: dict[str, list[list[float]]] = {name: [] for name in names}
    begin: dict[str, list[float]] = {name: [] for name in names}
    memory: dict[str, list[int]] = {name: [] for name in names}
    for _ in range(int(config["turns"])):
        for name in names:
            strategy = make_strategy(name, config)
            start = perf_counter()
            ends, peak = time_rounds(strategy, grid, model, rounds)
            seconds[name].append(np.diff(ends).tolist())
            begin[name].append(ends[1] - start)
            memory[name].append(peak)
    measured = {**seconds, "begin": begin, "memory": memory}
    Path(str(config["out"])).write_text(json.dumps(measured))


def make_strategy(name: str, config: UserConfig) -> Strategy:
    """Return stock FedAvg or CohortStrategy, for the same clients and the same cohort size."""
    clients = int(config["clients"])
    cohort = int(config["cohort"])
    if name == "stock":
        return FedAvg(
            fraction_train=1e-9,
            min_train_nodes=cohort,
            min_available_nodes=clients,
            fraction_evaluate=0.0,
        )
    return CohortStrategy(
        FedAvg(fraction_evaluate=0.0),
        "e3cs-0.5",
        cohort,
        num_clients=clients,
        deadline=float(config["deadline"]) or None,
        wait=float(config["wait"]),
        folder=str(config["folder"]) or None,
    )


def time_rounds(
    strategy: Strategy, grid: Grid, model: ArrayRecord, rounds: int
) -> tuple[list[float], int]:
    """Return the times at which rounds 0, 1, ... were over, and the largest memory seen.

    Flower calls `evaluate_fn` before the first round and at the end of each round.
    """
    ends: list[float] = []
    memory: list[int] = []

    def note(server_round: int, arrays: ArrayRecord) -> None:
        ends.append(perf_counter())
        memory.append(resident_bytes())

    strategy.start(grid, model, rounds, evaluate_fn=note)
    return ends, max(memory)


def resident_bytes() -> int:
    """Return the memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
