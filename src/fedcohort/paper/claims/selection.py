"""The paper's claims about who is asked, and which comparisons decide them."""

from fedcohort.paper.claims.claim import Claim
from fedcohort.paper.claims.selection_checks import (
    best_class_asked_most,
    fair_among_the_best,
    fairness_order,
    little_is_sacrificed,
    nothing,
    powd_asks_who_fails,
    powd_is_low_throughout,
    regret_below_bound,
    success_order,
    turn_of_inc,
    wrong_in_total,
    wrong_per_client,
)

SECTION = "Numerical Simulation"
GROUNDS = ("selection",)
DOZENS_QUOTE = (
    "E3CS-0 … only wrongly selects sub-optimal classes of clients dozens of times over … 2500 "
    "rounds"
)
CLAIMS = (
    Claim(
        "dozens of wrong choices, in all",
        SECTION,
        DOZENS_QUOTE,
        "100 less all choices outside the best class",
        wrong_in_total,
        GROUNDS,
    ),
    Claim(
        "dozens of wrong choices, per client",
        SECTION,
        DOZENS_QUOTE,
        "100 less the mean times that such a client is asked",
        wrong_per_client,
        GROUNDS,
    ),
    Claim(
        "class 4 asked most",
        SECTION,
        "all the schemes barring Random and pow-d would deliver more selection frequency to the "
        "clients in Class 4",
        "mean times asked in class 4 less the highest mean of the others",
        best_class_asked_most,
        GROUNDS,
    ),
    Claim(
        "CEP hardly sacrificed",
        SECTION,
        "some degree of fairness while not necessarily sacrificing a lot in terms of CEP",
        "E3CS-0's CEP over FedCS's, less 0.9",
        little_is_sacrificed,
        GROUNDS,
    ),
    Claim(
        "fair among the best",
        SECTION,
        "E3CS-0 would share the most probability over all the 25 clients in Class 4",
        "Jain's index within the class",
        fair_among_the_best,
        GROUNDS,
    ),
    Claim(
        "fairness order",
        SECTION,
        "Random > E3CS-0.8 > pow-d > E3CS-0.5 > E3CS-0 > FedCS",
        "Jain's index by seed",
        fairness_order,
        GROUNDS,
    ),
    Claim(
        "success order",
        SECTION,
        "fairness quota has a negative correlation on training success ratio",
        "success ratio by seed",
        success_order,
        GROUNDS,
    ),
    Claim(
        "pow-d asks who fails",
        SECTION,
        "pow-d is prone to select the clients which are more likely to fail",
        "success ratio by seed",
        powd_asks_who_fails,
        GROUNDS,
    ),
    Claim(
        "pow-d low throughout",
        SECTION,
        "pow-d has a very low CEP and success ratio throughout the whole training session",
        "success ratio in every tenth of the rounds, Random less pow-d",
        powd_is_low_throughout,
        GROUNDS,
    ),
    Claim(
        "turn at T/4",
        SECTION,
        "E3CS-inc undertakes a significant turn in Round 625",
        "success per round before and after T/4",
        turn_of_inc,
        GROUNDS,
    ),
    Claim(
        "E3CS-inc becomes Random",
        SECTION,
        "E3CS-inc will eventually converge to the convergence value of Random",
        "construction: after T/4 both ask everyone with the same chance",
        nothing,
        GROUNDS,
        without_runs={"selection": "holds by construction"},
    ),
    Claim(
        "regret bound",
        "Theorem 1",
        "The regret of E3CS is upper-bounded by …",
        "bound less regret, with the paper's update",
        regret_below_bound,
        GROUNDS,
    ),
    Claim(
        "no regret at full quota",
        "Theorem 1",
        "the regret of E3CS would diminish to 0 as σ → k/K",
        "proof: the regret is at most the sum of R = k − Kσ over the rounds",
        nothing,
        GROUNDS,
        without_runs={"selection": "holds by proof"},
    ),
)
