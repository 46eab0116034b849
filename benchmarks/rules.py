"""What a rule that remembers updates costs beside one that does not.

    python benchmarks/rules.py [--device cuda] [--model cifar-cnn] [--runs 28] [--rounds 8]

Two engines, one with `normalised` and one with `fedvarp`, train the same cohorts by turns. The
first two rounds warm up. The ratio of each pair of rounds is taken, then the median.
"""

import argparse
from dataclasses import replace
from statistics import median
from time import perf_counter

import torch

from fedcohort.bench.learning import draw_cohorts, make_engine
from fedcohort.bench.measurement import describe_machine
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

    on_gpu = options.device != "cpu"
    precision = "bf16" if on_gpu else "float32"
    how = Options(options.device, precision, compiled=on_gpu, memory=options.memory)
    engines = {
        rule: with_rule(make_engine(options.model, options.runs, how), rule) for rule in RULES
    }
    seconds: dict[str, list[float]] = {rule: [] for rule in RULES}
    for round in range(WARM_UP + options.rounds):
        for rule, engine in engines.items():
            start = perf_counter()
            engine.train(round, *draw_cohorts(options.runs, round))
            if on_gpu:
                torch.cuda.synchronize()
            seconds[rule].append(perf_counter() - start)

    plain, remembering = (seconds[rule][WARM_UP:] for rule in RULES)
    ratios = [own / other for own, other in zip(remembering, plain, strict=True)]
    memory = engines["fedvarp"].memory
    print(f"{describe_machine()}; {options.model}, {options.runs} runs, {options.device}")
    print(f"normalised: median round {median(plain):.3f} s")
    print(f"fedvarp: median round {median(remembering):.3f} s, {memory.values.nbytes:,} bytes")
    print(
        f"fedvarp / normalised: {median(ratios):.3f}, from {min(ratios):.3f} to {max(ratios):.3f}"
    )


def with_rule(engine: Engine, rule: str) -> Engine:
    """Return an engine like this one whose runs all use the rule."""
    runs = [replace(run, aggregation=rule) for run in engine.runs]
    modules = [engine.module] * len(runs)
    return Engine(modules, engine.x, engine.y, runs, engine.sgd, engine.options)


if __name__ == "__main__":
    main()
