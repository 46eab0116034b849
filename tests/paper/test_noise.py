"""The noise of trained runs, worked by hand, and the error rates that it gives."""

from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from fedcohort.paper.claims import training_checks
from fedcohort.paper.claims.claim import compare, decide
from fedcohort.paper.claims.evidence import Evidence, our_evidence
from fedcohort.paper.claims.group import groups_of
from fedcohort.paper.claims.noise import RunNoise, estimate_noise
from fedcohort.paper.claims.verdicts import CLAIMS, judge, report_on
from fedcohort.paper.readings import FITTING, PRINTED
from fedcohort.paper.results import read_results
from fedcohort.selection.registry import PAPER_SELECTORS
from fedcohort.statistics import Noise, pool_noise
from fedcohort.students_t import t_p_value

RESULTS = Path(__file__).parents[2] / "results"


def by_world(*values):
    return dict(enumerate(values))


def test_the_noise_is_what_effects_of_scheme_and_world_leave():
    # Residuals of each layout worked by hand: +-0.5 four times; the second layout adds nothing,
    # because its worlds move both schemes alike, and the third has one world only.
    first = {"a": by_world(1.0, 2.0), "b": by_world(3.0, 6.0)}
    second = {"a": by_world(5.0, 7.0), "b": by_world(1.0, 3.0)}
    third = {"a": by_world(5.0), "b": by_world(9.0)}
    assert pool_noise([first]) == Noise(1.0, 1)
    assert pool_noise([first, second, third]) == Noise(0.5, 2)
    assert pool_noise([third]).degrees == 0


def test_the_noise_of_unequal_worlds_is_that_of_least_squares():
    rng = np.random.default_rng(5)
    values = rng.normal(size=(4, 3))
    complete = {f"s{row}": by_world(*line) for row, line in enumerate(values.tolist())}
    centred = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    noise = pool_noise([complete])
    assert noise.degrees == 3 * 2
    assert noise.variance == pytest.approx((centred**2).sum() / 6)
    del complete["s0"][2]  # eleven values, six effects
    assert pool_noise([complete]).degrees == 11 - 6


def test_schemes_that_are_one_run_count_once():
    one = by_world(1.0, 2.0)
    layout = {"e3cs-0": one, "e3cs-inc": dict(one), "random": by_world(3.0, 6.0)}
    assert pool_noise([layout]) == Noise(1.0, 1)


def test_fedcs_has_a_noise_of_its_own():
    # The others: +-0.5 four times, so 1 with one degree; their means are 2 and 4. FedCS less
    # these is 8 and 2: variance 18 with one degree.
    layout = {"a": by_world(1.0, 2.0), "b": by_world(3.0, 6.0), "fedcs": by_world(10.0, 6.0)}
    noise = estimate_noise([layout])
    assert noise == RunNoise(Noise(1.0, 1), Noise(18.0, 1), share=0.5)
    assert noise.of_difference("a", "b") == Noise(2.0, 1)
    # 18 holds half of the others' variance in the mean of two; the other half is added.
    apart = noise.of_difference("fedcs", "b")
    assert apart.variance == pytest.approx(18.5)
    assert apart.degrees == pytest.approx(18.5**2 / (18**2 + 0.5**2))


def test_a_scheme_that_lacks_a_world_of_fedcs_is_not_in_the_mean():
    layout = {"a": by_world(1.0, 2.0), "b": {0: 3.0}, "fedcs": by_world(10.0, 6.0)}
    noise = estimate_noise([layout])
    assert (noise.apart, noise.share) == (Noise(12.5, 1), 1.0)  # 9 and 4 about their mean
    alone = estimate_noise([{"fedcs": by_world(10.0, 6.0)}])
    assert alone.of_difference("fedcs", "a").degrees == 0


def null_verdicts(fedcs_noise, seed, replicates=400, worlds=3):
    """Return how often a claim of ten comparisons gets any verdict though nothing is true."""
    rng = np.random.default_rng(seed)
    schemes = ("fedcs", "a", "b", "c", "d", "e")
    sizes = np.array([fedcs_noise, 1.0, 1.0, 1.0, 1.0, 1.0])
    wrong = 0
    for _ in range(replicates):
        layouts = []
        for _group in range(2):
            values = rng.normal(size=(6, worlds)) * sizes[:, None]
            values += 2 * rng.normal(size=worlds)  # what a world does to all schemes
            rows = [by_world(*row) for row in values.tolist()]
            layouts.append(dict(zip(schemes, rows, strict=True)))
        noise = estimate_noise(layouts)
        checks = []
        for layout in layouts:
            for other in schemes[1:]:
                pair = (layout["fedcs"], layout[other])
                difference = noise.of_difference("fedcs", other)
                checks.append(compare("x", *pair, unit="accuracy", noise=difference))
        verdicts = {decision.verdict for decision in decide(checks)}
        wrong += verdicts != {"cannot be told"}
    return wrong / replicates


@pytest.mark.parametrize("fedcs_noise", [1.0, 3.0])
def test_where_nothing_is_true_at_most_one_claim_in_twenty_is_decided(fedcs_noise):
    error = 3 * (0.05 * 0.95 / 400) ** 0.5  # three standard errors of 400 claims
    assert null_verdicts(fedcs_noise, seed=11) <= 0.05 + error


def test_one_noise_for_all_schemes_would_decide_too_often():
    # The same claims with FedCS counted like the others.
    rng = np.random.default_rng(12)
    wrong = 0
    for _ in range(400):
        layouts = []
        for _group in range(2):
            values = rng.normal(size=(6, 3)) * np.array([3.0, 1, 1, 1, 1, 1])[:, None]
            layouts.append({str(row): by_world(*values[row].tolist()) for row in range(6)})
        noise = pool_noise(layouts).times(2)
        checks = []
        for layout in layouts:
            for number in range(1, 6):
                pair = (layout["0"], layout[str(number)])
                checks.append(compare("x", *pair, unit="accuracy", noise=noise))
        wrong += {decision.verdict for decision in decide(checks)} != {"cannot be told"}
    assert wrong / 400 > 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5


def null_evidence(rng, worlds, correlation):
    """Return rounds of equal schemes, FedCS three times as noisy as the others.

    Args:
        rng: Source of the noise.
        worlds: Number of worlds of each group.
        correlation: Of the noise of FedAvg with that of FedProx on the same partition.
    """
    of_partition = {}
    rounds = {}
    for group, count in zip(groups_of("cifar10"), worlds, strict=True):
        size = (len(PAPER_SELECTORS), 3)
        common = of_partition.setdefault(group.partition, rng.normal(size=size))
        noise = sqrt(correlation) * common + sqrt(1 - correlation) * rng.normal(size=size)
        noise[PAPER_SELECTORS.index("fedcs")] *= 3
        noise += 2 * rng.normal(size=3)  # what a world does to all schemes
        for name, row in zip(PAPER_SELECTORS, np.exp(6 + 0.05 * noise).tolist(), strict=True):
            rounds[group, name] = by_world(*row[:count])
    return Evidence(
        lambda group, selector, quantity: rounds.get((group, selector), {}),
        lambda group, selector: dict.fromkeys(rounds.get((group, selector), {}), 2500),
        {"cifar10": 2500, "emnist-letters": 400},
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("worlds", "correlation"), [((2, 1, 3, 1), 0.0), ((3, 3, 3, 3), 0.0), ((3, 3, 3, 3), 0.95)]
)
def test_a_claim_in_few_worlds_or_groups_that_are_alike_is_decided_rarely(worlds, correlation):
    rng = np.random.default_rng(13)
    (claim,) = [claim for claim in CLAIMS if claim.name == "faster than Random"]
    replicates = 600
    wrong = 0
    for _ in range(replicates):
        verdict, _ = judge(claim, "cifar10", null_evidence(rng, worlds, correlation))
        wrong += verdict != "cannot be told"
    assert wrong / replicates <= 0.05 + 3 * sqrt(0.05 * 0.95 / replicates)


def test_a_small_sum_of_two_noises_claims_too_many_degrees():
    # Nothing is true, and the noises are those of FedCS and of the others in the layout of the
    # best-fitting network: 9 + 1/5 with 3 degrees, 4/5 with 12. Twelve comparisons are corrected.
    rng = np.random.default_rng(14)
    replicates = 10_000
    level = 0.05 / 12
    wrong = 0
    for difference in rng.normal(size=replicates) * sqrt(10):
        apart = Noise(9.2 * rng.chisquare(3) / 3, 3)
        noise = apart + Noise(0.8 * rng.chisquare(12) / 12, 12)
        wrong += t_p_value(difference / sqrt(noise.variance), noise.degrees) < level
    assert 2 < wrong / replicates / level < 4


def verdicts_on_training(model):
    """Return the verdicts on CIFAR-10, of all worlds and of those that chose nothing."""
    results = read_results(RESULTS, {"precision": "bf16"})
    evidence = our_evidence(results, {"model": model, "precision": "bf16", "device": "cuda"})
    training_checks.noise_of.cache_clear()
    rows = report_on(evidence).tables["Verdicts"]
    of_training = [row for row in rows if row["on"] == "cifar10"]
    alone = {row["claim"]: row["verdict of these"] for row in of_training}
    return {row["claim"]: row["verdict"] for row in of_training}, alone


@pytest.mark.slow
def test_no_verdict_rests_on_the_degrees_of_a_sum_of_noises(monkeypatch):
    def with_fewer_degrees(first, second):
        noise = satterthwaite(first, second)
        return Noise(noise.variance, min(first.degrees, second.degrees))

    satterthwaite = Noise.__add__
    for model, expected in ((FITTING, {"Random overtakes FedCS"}), (PRINTED, set())):
        usual, usual_alone = verdicts_on_training(model)
        with monkeypatch.context() as patch:
            patch.setattr(Noise, "__add__", with_fewer_degrees)
            careful, careful_alone = verdicts_on_training(model)
        assert usual == careful
        changed = {name for name in usual_alone if careful_alone[name] != usual_alone[name]}
        assert changed == expected
    training_checks.noise_of.cache_clear()


@pytest.mark.slow
def test_the_verdicts_that_rest_on_one_noise_are_those_that_the_page_names(monkeypatch):
    # Each comparison within a group takes the noise of its own partition alone.
    usual = {model: verdicts_on_training(model)[0] for model in (FITTING, PRINTED)}
    all_groups = training_checks.groups_of
    pooled_noise = training_checks.noise_of.__wrapped__
    compared = []  # the group that is being compared, if there is one

    def own_noise(evidence, task, quantity):
        def own_groups(task, *cohort):
            own = all_groups(task, *cohort)
            if not compared:
                return own
            return [group for group in own if group.partition == compared[-1].partition]

        with monkeypatch.context() as patch:
            patch.setattr(training_checks, "groups_of", own_groups)
            return pooled_noise(evidence, task, quantity)

    own_noise.cache_clear = lambda: None

    def within_group(comparison):
        def compare_within(evidence, group, *args, **options):
            compared.append(group)
            try:
                return comparison(evidence, group, *args, **options)
            finally:
                compared.pop()

        return compare_within

    monkeypatch.setattr(training_checks, "noise_of", own_noise)
    for name in ("faster", "better"):
        monkeypatch.setattr(training_checks, name, within_group(getattr(training_checks, name)))
    changed = {}
    for model, before in usual.items():
        after, _ = verdicts_on_training(model)
        changed[model] = {name: after[name] for name in before if after[name] != before[name]}
    assert changed == {
        FITTING: {"faster than Random, third target": "cannot be told", "pow-d slow": "holds"},
        PRINTED: {"E3CS-0, -inc next": "cannot be told"},
    }
