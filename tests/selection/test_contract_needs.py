"""The contract of all selectors, continued: what a scheme declares that it needs."""

import re
from dataclasses import replace

import numpy as np
import pytest
from states import same_state

from fedcohort.lab.config import SimulationConfig
from fedcohort.selection.registry import SELECTORS, Federation, make_selector

ROUNDS = 10
ONLY_WITH_TRAINING = (
    "needs_losses",
    "probes_losses",
    "needs_norms",
    "needs_data_sizes",
    "needs_deadline",
)
NEEDING_DATA_SIZES = [
    name for name, scheme in SELECTORS.items() if scheme.selector.needs_data_sizes
]
NEEDING_DEADLINE = [name for name, scheme in SELECTORS.items() if scheme.selector.needs_deadline]

every = pytest.mark.parametrize("name", SELECTORS)


@every
def test_what_a_scheme_needs_of_a_federation_is_asked_for_by_name(name):
    scheme = SELECTORS[name]
    known = {"horizon": 9, "loss_of": np.cos, "success_rates": np.ones(12)}
    sizes_and_deadline = {"data_sizes": np.ones(12), "deadline": 10.0}
    for missing in sizes_and_deadline:
        rest = {key: value for key, value in sizes_and_deadline.items() if key != missing}
        federation = Federation(12, 4, 0, **known, **rest)
        if getattr(scheme.selector, f"needs_{missing}"):
            with pytest.raises(ValueError, match=rf"{missing} must be given for {name}, got None"):
                make_selector(name, federation)
        else:
            make_selector(name, federation)


@every
@pytest.mark.parametrize(
    ("capability", "report_name"),
    [("needs_losses", "loss"), ("needs_seconds", "seconds"), ("needs_norms", "norm")],
)
def test_an_outcome_without_what_a_scheme_needs_is_refused(
    name, capability, report_name, build, report
):
    selector = build(name)
    cohort = selector.select(0)
    before = selector.state_dict()
    lacking = replace(report(cohort), **{report_name: None})
    if not getattr(selector, capability):
        selector.update(lacking)
        return
    with pytest.raises(ValueError, match=rf"{report_name} must be reported to a selector"):
        selector.update(lacking)
    assert same_state(selector.state_dict(), before)
    selector.update(report(cohort))


@pytest.mark.parametrize("name", NEEDING_DATA_SIZES)
@pytest.mark.parametrize(
    ("data_sizes", "message"),
    [
        (np.ones(11), r"data_sizes must have shape \(12,\), got \(11,\)"),
        (np.zeros(12), r"data_sizes must be between 1.0 and 2147483647.0, got 0.0 at position 0"),
        (np.full(12, np.nan), r"data_sizes must be between 1.0 and 2147483647.0, got nan"),
        ("many", r"data_sizes must be numbers of shape \(12,\), got 'many'"),
    ],
)
def test_impossible_data_sizes_are_refused(name, data_sizes, message):
    with pytest.raises(ValueError, match=message):
        make_selector(name, Federation(12, 4, 0, data_sizes=data_sizes))


@pytest.mark.parametrize("name", NEEDING_DATA_SIZES)
def test_every_run_may_have_its_own_data_sizes(name, report):
    sizes = 10 + np.arange(24).reshape(2, 12) ** 2
    batched = make_selector(name, Federation(12, 4, [3, 1], data_sizes=sizes))
    alone = []
    for row, seed in enumerate([3, 1]):
        alone.append(make_selector(name, Federation(12, 4, seed, data_sizes=sizes[row])))
    for round in range(ROUNDS):
        cohort = batched.select(round)
        batched.update(report(cohort))
        for row, selector in enumerate(alone):
            own = selector.select(round)
            np.testing.assert_array_equal(own.clients, cohort.clients[row])
            selector.update(report(own))


@pytest.mark.parametrize("deadline", [0.0, -1.0, np.inf, np.nan, "soon"])
@pytest.mark.parametrize("name", NEEDING_DEADLINE)
def test_impossible_deadlines_are_refused(name, deadline):
    with pytest.raises(ValueError, match=r"deadline must be a finite number above 0, got"):
        make_selector(name, Federation(12, 4, 0, deadline=deadline))


@every
def test_a_state_with_values_out_of_bounds_is_refused(name, build):
    state = build(name).state_dict()
    for key, bounds in build(name).array_bounds.items():
        for bound, direction in zip(bounds, (-np.inf, np.inf), strict=True):
            if np.isinf(bound):
                continue
            with np.errstate(over="ignore"):  # there is nothing but inf above the largest
                outside = np.full(state[key].shape, np.nextafter(bound, direction))
            message = rf"{key} of the state must be between {re.escape(str(bounds[0]))} and"
            with pytest.raises(ValueError, match=message):
                build(name).load_state_dict({**state, key: outside})


@every
def test_a_simulation_refuses_what_it_cannot_give_before_it_plays(name):
    needs = [need for need in ONLY_WITH_TRAINING if getattr(SELECTORS[name].selector, need)]
    if not needs:
        SimulationConfig((name,))
        return
    with pytest.raises(ValueError, match=rf"selector must need no .* trained, got '{name}'"):
        SimulationConfig(("random", name))
