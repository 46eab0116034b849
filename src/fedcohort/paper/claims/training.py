"""The paper's claims about training, and which comparisons decide them."""

from fedcohort.paper.claims.claim import Claim
from fedcohort.paper.claims.training_checks import (
    e3cs_0_is_second_lowest,
    failing_clients_lose_more,
    faster_at,
    faster_than_random,
    fedcs_is_fastest,
    fedcs_is_lowest,
    followed_by_e3cs,
    inc_has_both,
    lead_shrinks,
    powd_is_slow,
    random_overtakes,
    twice_as_fast,
    wider_gap_in_noniid,
    wider_gap_on_cifar,
)

SECTION = "Real Training on Public Dataset"
SPEED = "first round at the lowest target"
GAP = "pow-d's over FedCS's first round"
FINAL = "final accuracy"
BOTH = "first round, and final accuracy less one point"
ABSTRACT = (
    "up to 2x faster convergence to a fixed model accuracy while maintaining the same level of "
    "final model accuracy, compared with the state-of-the-art selection schemes"
)


def _abstract(baseline: str, label: str) -> Claim:
    """Return the abstract's sentence against one baseline."""
    return Claim(
        f"abstract, against {label}",
        "Abstract",
        ABSTRACT,
        "some kind of E3CS in some group at some target: half the rounds, and a final accuracy "
        "at most one point below",
        twice_as_fast(baseline),
        together=2,
        up_to=True,
    )


CLAIMS = (
    _abstract("random", "Random"),
    _abstract("fedcs", "FedCS"),
    _abstract("pow-d", "pow-d"),
    Claim(
        "FedCS fastest",
        SECTION,
        "FedCS(A) … obtains the fastest growth of accuracy during the first stage",
        SPEED,
        fedcs_is_fastest,
    ),
    Claim(
        "E3CS-0, -inc next",
        SECTION,
        "It is followed closely by E3CS-0(A) and E3CS-inc(A)",
        SPEED,
        followed_by_e3cs,
    ),
    Claim(
        "faster than Random",
        SECTION,
        "E3CS-0(A), E3CS-inc(A), and FedCS(A) all has been accelerated … compared with … Random",
        SPEED,
        faster_than_random,
    ),
    Claim(
        "faster than Random, second target",
        SECTION,
        "E3CS-0(A), E3CS-inc(A), and FedCS(A) all has been accelerated to reach a certain fixed "
        "accuracy",
        "first round at the second target",
        faster_at(1),
    ),
    Claim(
        "faster than Random, third target",
        SECTION,
        "E3CS-0(A), E3CS-inc(A), and FedCS(A) all has been accelerated to reach a certain fixed "
        "accuracy",
        "first round at the third target",
        faster_at(2),
    ),
    Claim(
        "CEP matters less with rounds",
        SECTION,
        "the effect of CEP diminishes in the middle/later stage of training",
        "Random's over FedCS's first round at the lowest target, less that at the second",
        lead_shrinks,
    ),
    Claim(
        "pow-d slow",
        SECTION,
        "pow-d … does not promise us a commensurate convergence speed in our … volatile context",
        SPEED,
        powd_is_slow,
    ),
    Claim(
        "wider gap in non-iid",
        SECTION,
        "the impact on convergence speed seems to grow more significant in non-iid scenarios",
        GAP,
        wider_gap_in_noniid,
    ),
    Claim(
        "wider gap on CIFAR-10",
        SECTION,
        "the impact of CEP … is more significant for training on the CIFAR-10 dataset",
        GAP,
        wider_gap_on_cifar,
        ("both tasks",),
    ),
    Claim(
        "Random overtakes FedCS",
        SECTION,
        "Random(A) … gradually emulates FedCS(A) and eventually dominates it",
        FINAL,
        random_overtakes,
    ),
    Claim(
        "FedCS lowest",
        SECTION,
        "For all the experimental groups … the final test accuracy of … FedCS, is the lowest",
        FINAL,
        fedcs_is_lowest,
    ),
    Claim(
        "E3CS-0 second lowest",
        SECTION,
        "The method with the second-lowest accuracy is E3CS-0",
        FINAL,
        e3cs_0_is_second_lowest,
    ),
    Claim(
        "E3CS-inc has both",
        SECTION,
        "E3CS-inc … very promising convergence speed in the first stage while its final test "
        "accuracy does not suffer",
        BOTH,
        inc_has_both,
        together=2,
    ),
    Claim(
        "failing clients have higher loss",
        "Numerical Simulation",
        "those clients that are more likely to fail typically have a higher loss",
        "loss of the class that fails most less that of the class that fails least",
        failing_clients_lose_more,
        without_runs={"cifar10": "needs runs that record the loss of every client"},
    ),
)
