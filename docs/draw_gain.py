"""Draw the picture of the README: what a selector gains, and whom it asks for that.

    python docs/draw_gain.py docs/gain.svg

Every selector meets the same world: 100 clients in four classes that answer 10, 30, 60 and 90 %
of the time, 20 of them asked per round, 600 rounds, 20 seeds. It prints the updates that arrive in
the last 100 rounds, as the captions say. The picture is the same for the same versions.
"""

import argparse

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

from fedcohort import Federation, bernoulli, class_rates, make_selector, play

CLIENTS = 100
COHORT = 20
ROUNDS = 600
SEEDS = range(20)
LATE = 100  # rounds at the end, of which the mean is printed
WINDOW = 25  # rounds in a moving average
CLASSES = ("10 %", "30 %", "60 %", "90 %")
SCHEMES = {
    "fedcs": ("FedCS (is told the rates)", "#7f7f7f"),
    "e3cs-0": ("E3CS-0 (no quota)", "#d62728"),
    "e3cs-0.5": ("E3CS-0.5", "#1f77b4"),
    "random": ("Random", "#2ca02c"),
}


def main() -> None:
    """Simulate every scheme, print its share of arrived updates and draw the picture."""
    parser = argparse.ArgumentParser(description="Draw the picture of the README.")
    parser.add_argument("out", help="file to write, for example docs/gain.svg")
    path = parser.parse_args().out

    arrived = {}
    asked = {}
    for name in SCHEMES:
        arrived[name], asked[name] = simulate(name)
        late = arrived[name][-LATE:].mean()
        print(f"{name}: {late:.1f} of {COHORT} updates arrive in each of the last {LATE} rounds")

    draw(arrived, asked, path)


def simulate(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Play one scheme over all seeds in lock-step.

    Args:
        name: Name of a registered selector.

    Returns:
        Arrived updates per round, averaged over seeds, [ROUNDS], and how often a client of each
        class is asked in 100 rounds, [4].
    """
    rates = class_rates(CLIENTS)
    seeds = list(SEEDS)
    federation = Federation(CLIENTS, COHORT, rng=seeds, success_rates=rates)
    selector = make_selector(name, federation)

    arrived = np.zeros(ROUNDS)
    asked = np.zeros(CLIENTS)
    for record in play(selector, bernoulli(rates, rng=seeds), rounds=ROUNDS):
        arrived[record.cohort.round] = record.arrived.sum(axis=-1).mean()
        np.add.at(asked, record.cohort.clients.ravel(), 1)

    per_client = 100 * asked / (ROUNDS * len(seeds))
    return arrived, per_client.reshape(4, -1).mean(axis=1)


def draw(arrived: dict[str, np.ndarray], asked: dict[str, np.ndarray], path: str) -> None:
    """Draw the two panels and write them as SVG without a date."""
    plt.rcParams.update({"svg.hashsalt": "fedcohort", "font.size": 10})
    figure, (left, right) = plt.subplots(
        ncols=2, figsize=(9.0, 3.4), width_ratios=(3, 2), layout="constrained"
    )

    kernel = np.full(WINDOW, 1 / WINDOW)
    for name, (label, colour) in SCHEMES.items():
        smooth = np.convolve(arrived[name], kernel, mode="valid")
        rounds = np.arange(WINDOW, ROUNDS + 1)
        left.plot(rounds[::5], smooth[::5], color=colour, label=label)
    left.set(
        title="Updates that arrive, of 20 asked for",
        xlabel="round",
        ylabel="updates per round",
        ylim=(0, COHORT),
        yticks=range(0, COHORT + 1, 5),
    )
    left.legend(loc="lower right", frameon=False)

    width = 0.2
    for place, (name, (_, colour)) in enumerate(SCHEMES.items()):
        right.bar(np.arange(4) + (place - 1.5) * width, asked[name], width, color=colour)
    right.set_xticks(range(4), CLASSES)
    right.set(
        title="How often a client is asked",
        xlabel="how often the client answers",
        ylabel="times in 100 rounds",
    )

    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)

    figure.savefig(path, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
