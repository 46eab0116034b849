"""What a rule that remembers updates costs beside one that does not.

    python benchmarks/rules.py [--device cuda] [--model cifar-cnn] [--runs 28] [--rounds 8]

Two engines, one with `normalised` and one with `fedvarp`, train the same cohorts by turns. The
first two rounds warm up. The ratio of each pair of rounds is taken, then its quartiles.
`python benchmarks/run.py rules` keeps a record.
"""

import argparse
from dataclasses import replace
from time import perf_counter

import torch

from fedcohort.bench.learning import draw_cohorts, make_engine
from fedcohort.bench.measurement import Row, describe_machine, make_row
from fedcohort.cli.console import print_table
from fedcohort.learning import Engine, Options

WARM_UP = 2
RULES = ("normalised", "fedvarp")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure the cost of remembering updates.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--model", default="cifar-cnn", choices=("cifar-cnn", "emnist-cnn"))
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--memory", default="float32", choices=("float32", "bf16"))
    options = parser.parse_args()
    print_table(measure(**vars(options)), describe_machine())


def measure(model: str, runs: int, rounds: int, device: str, memory: str = "float32") -> list[Row]:
    """Return the seconds of a round with each rule, and their ratio.

    Args:
        model: Name of the network.
        runs: Runs in lock-step.
        rounds: Rounds that count.
        device: Where to train; a GPU trains in bf16, compiled.
        memory: Type of the remembered updates.
    """
    on_gpu = device != "cpu"
    precision = "bf16" if on_gpu else "float32"
    how = Options(device, precision, compiled=on_gpu, memory=memory)
    engines = {rule: with_rule(make_engine(model, runs, how), rule) for rule in RULES}
    seconds: dict[str, list[float]] = {rule: [] for rule in RULES}
    for round in range(WARM_UP + rounds):
        for rule, engine in engines.items():
            start = perf_counter()
            engine.train(round, *draw_cohorts(runs, round))
            if on_gpu:
                torch.cuda.synchronize()
            seconds[rule].append(perf_counter() - start)

    plain, remembering = (seconds[rule][WARM_UP:] for rule in RULES)
    ratios = [own / other for own, other in zip(remembering, plain, strict=True)]
    words = f"{model}, {runs} runs, {precision}"
    return [
        make_row(f"{words}: normalised, a round", "s", 1.0, plain),
        make_row(f"{words}: fedvarp, a round", "s", 1.0, remembering),
        make_row(f"{words}: fedvarp / normalised", "×", 1.0, ratios),
    ]


def with_rule(engine: Engine, rule: str) -> Engine:
    """Return an engine like this one whose runs all use the rule."""
    runs = [replace(run, aggregation=rule) for run in engine.runs]
    modules = [engine.module] * len(runs)
    return Engine(modules, engine.x, engine.y, runs, engine.sgd, engine.options)


if __name__ == "__main__":
    main()
