"""From a log to advice: estimate, compare, recommend."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedcohort.advice.change import Change, find_change
from fedcohort.advice.cohort import CohortAdvice, advise_cohort
from fedcohort.advice.deadline import KEEP, DeadlineAdvice, advise_deadline
from fedcohort.advice.durations import Durations, fit_durations
from fedcohort.advice.estimates import (
    Interval,
    block_length,
    bootstrap_rounds,
    bootstrap_weights,
    share_interval,
)
from fedcohort.advice.fitted import (
    draw_rates,
    fitted_world,
    rates_at,
    resampled_availability,
    resampled_world,
    world_at,
)
from fedcohort.advice.log import FederationLog
from fedcohort.advice.persistence import Persistence, estimate_persistence
from fedcohort.advice.rates import Rates, estimate_rates
from fedcohort.advice.rules import RuleAdvice, advise_rule
from fedcohort.advice.selector_play import check_needs, world_size
from fedcohort.advice.selectors import (
    CANDIDATES,
    FAIR,
    UNIFORM,
    SelectorAdvice,
    advise_selector,
)
from fedcohort.advice.settings import comparison_settings, flower_snippet, settings_text
from fedcohort.advice.together import Together, estimate_together
from fedcohort.advice.waste import Waste, measure_waste
from fedcohort.checks import check_int, check_range
from fedcohort.rng import stream
from fedcohort.selection.registry import find_scheme

LEAST_ROUNDS = 5
RESAMPLES = 400
LEAST_AFTER_CHANGE = 20  # rounds after a change that suffice to forget what was before
SHORTEST, LONGEST = 100, 400  # rounds to play ahead
MOST_AHEAD = 10_000
OnProgress = Callable[[str, int, int], None]  # what is done now, parts done, parts in all


@dataclass(frozen=True)
class Options:
    """What an operator may ask for.

    Attributes:
        selectors: Selectors to compare.
        needed: Answers per round that are wanted; None for as many as now.
        keep: Share of the answers that a deadline must keep.
        fair: Share of its fair share that every fifth of the clients must be asked.
        model_bytes: Size of the model; None if it is unknown.
        rounds: Rounds to play ahead; None for about as many as the log has.
        seed: Seed of everything that is drawn.

    Raises:
        ValueError: If a value is out of bounds.
    """

    selectors: Sequence[str] = CANDIDATES
    needed: int | None = None
    keep: float = KEEP
    fair: float = FAIR
    model_bytes: int | None = None
    rounds: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_range("keep", self.keep, 0.0, 1.0)
        check_range("fair", self.fair, 0.0, 1.0)
        check_int("seed", self.seed, 0)
        if self.rounds is not None:
            check_int("rounds", self.rounds, 1, MOST_AHEAD)
        for name in ("needed", "model_bytes"):
            if getattr(self, name) is not None:
                check_int(name, getattr(self, name), 1)


@dataclass(frozen=True, eq=False)
class Advice:
    """What a log says, and what to do.

    Attributes:
        log: The log.
        used: The part of it that the advice is based on: all, or what follows a change.
        success: Share of the requests that were answered in time.
        rates: How often each client answers.
        persistence: Whether failures last.
        together: Whether clients fail together.
        change: Whether clients change over time.
        waste: Work that was thrown away.
        durations: How long answers take; None if the log does not say.
        deadline: What other deadlines would get; None if the log does not say.
        cohort: How many clients to ask.
        selector: Which selector to use.
        rule: Which aggregation rule to use.
        settings: Settings of a comparison in a world like the log's.
        settings_toml: The same as a TOML file.
        snippet: A Flower strategy to paste.
        training: Rows of a comparison that was trained, if one was asked for.
    """

    log: FederationLog
    used: FederationLog
    success: Interval
    rates: Rates
    persistence: Persistence
    together: Together
    change: Change
    waste: Waste
    durations: Durations | None
    deadline: DeadlineAdvice | None
    cohort: CohortAdvice
    selector: SelectorAdvice
    rule: RuleAdvice
    settings: dict[str, Any]
    settings_toml: str
    snippet: str
    training: list[dict[str, Any]] = field(default_factory=list)


def advise(
    log: FederationLog, options: Options | None = None, on_progress: OnProgress | None = None
) -> Advice:
    """Return what a log says, and what to do.

    Args:
        log: The log.
        options: What is asked for; by default nothing special.
        on_progress: Called before each part of the work with its name, the number of parts done
            and of all.

    Raises:
        ValueError: If the log has fewer than 5 rounds, or an option does not fit it.

    Examples:
        >>> from fedcohort.advice.played import Description, play_description
        >>> log = play_description(Description(20, 5, (0.3, 0.9), rounds=60))
        >>> advice = advise(log, Options(selectors=("e3cs-0.5",), rounds=50))
        >>> advice.rule.best, advice.cohort.present
        ('normalised', 5)
    """
    options = options or Options()
    on_progress = on_progress or (lambda part, done, total: None)
    if log.num_rounds < LEAST_ROUNDS:
        raise ValueError(
            f"{log.source} must hold at least {LEAST_ROUNDS} rounds to say anything, "
            f"got {log.num_rounds}"
        )
    if options.needed is not None:
        check_int("needed", options.needed, 1, log.num_clients)
    for name in options.selectors:
        check_needs(name, find_scheme(name).selector)

    on_progress("advice: clients", 0, 3)
    change = find_change(log, stream(options.seed, "advice", "change"))
    used = _since_change(log, change)
    persistence = estimate_persistence(used)
    block = block_length(used.num_rounds, persistence.memory)
    resamples = stream(options.seed, "advice", "rounds")
    weights = bootstrap_weights(used.num_rounds, RESAMPLES, block, resamples)
    rates = estimate_rates(used, persistence, stream(options.seed, "advice", "rates"))
    together = estimate_together(used, rates.mean, weights, block)
    success = share_interval(used.arrived_in_round, used.asked_in_round, weights, block)
    waste = measure_waste(used, weights, block)

    on_progress("advice: deadline", 1, 3)
    times = stream(options.seed, "advice", "deadline")
    is_mixed = change.is_certain and _may_have_changed(log, used, change)
    deadline = advise_deadline(used, block, times, options.keep, is_mixed=is_mixed)
    durations = fit_durations(used)

    on_progress("advice: selectors", 2, 3)
    ahead = options.rounds or int(np.clip(used.num_rounds, SHORTEST, LONGEST))
    rounds, runs = world_size(used.num_clients, ahead)
    worlds = stream(options.seed, "advice", "worlds")
    drawn = draw_rates(rates, runs, worlds)
    fitted = fitted_world(drawn, persistence, together, rounds, worlds)
    source = bootstrap_rounds(used.num_rounds, runs, block, worlds, length=rounds)
    resampled = resampled_world(used, drawn, persistence, source, worlds)
    sizes = stream(options.seed, "advice", "cohort")
    chosen, to_try = _deadlines_to_hand_out(used, deadline)
    in_time = fitted
    rates_then = rates.mean
    if durations is not None and chosen is not None and _is_new(used, chosen):
        # The cohort is for the deadline that is handed out with it.
        in_time = world_at(fitted, used, durations, chosen, sizes)
        rates_then = rates_at(rates.mean, used, durations, chosen)
    cohort = advise_cohort(used, in_time, durations, sizes, options.needed, chosen)
    size = min(cohort.recommended or used.num_clients, used.num_clients)
    # Selectors are compared with the cohort that is recommended.
    selector = advise_selector(
        fitted,
        resampled,
        size,
        used.num_rounds,
        options.selectors,
        options.fair,
        rates.mean,
        may_have_changed=_may_have_changed(log, used, change),
        present=log.selector,
        available=resampled_availability(used, source),
    )
    rule = advise_rule(used.num_clients, options.model_bytes)

    settings = comparison_settings(
        used,
        rates_then,
        persistence,
        durations,
        selectors=_to_compare(selector),
        rule=rule.best,
        cohort=size,
        deadline=chosen,
    )
    return Advice(
        log=log,
        used=used,
        success=success,
        rates=rates,
        persistence=persistence,
        together=together,
        change=change,
        waste=waste,
        durations=durations,
        deadline=deadline,
        cohort=cohort,
        selector=selector,
        rule=rule,
        settings=settings,
        settings_toml=settings_text(settings, used, together, cohort.enough),
        snippet=flower_snippet(
            selector=selector.best,
            rule=rule.best,
            cohort=size,
            clients=used.num_clients,
            deadline=chosen,
            enough=cohort.enough,
            is_guess=not selector.is_said and selector.best != selector.present,
            to_try=to_try,
            is_too_short=deadline is not None and deadline.is_too_short,
        ),
    )


def _since_change(log: FederationLog, change: Change) -> FederationLog:
    """Return the rounds after a change if there are enough of them, else the whole log."""
    # From the latest round that it may have been, so that nothing of before is left.
    if change.start and log.num_rounds - change.start >= LEAST_AFTER_CHANGE:
        return log.since(change.start)
    return log


def _may_have_changed(log: FederationLog, used: FederationLog, change: Change) -> bool:
    """Return whether clients may have changed during the rounds that are used."""
    return change.is_possible if used is log else change.may_go_on


def _is_new(log: FederationLog, deadline: float) -> bool:
    """Return whether a deadline differs from that of any round of the log."""
    return bool((log.deadline_in_round != deadline).any())


def _to_compare(found: SelectorAdvice) -> tuple[str, ...]:
    """Return the selectors to train: uniform and the best, or the best besides uniform."""
    names = [UNIFORM, found.best]
    if found.best == UNIFORM and found.runner_up is not None:
        names.append(found.runner_up)
    return tuple(dict.fromkeys(names))


def _deadlines_to_hand_out(
    log: FederationLog, found: DeadlineAdvice | None
) -> tuple[float | None, float | None]:
    """Return the deadline for the settings, and another that is worth a try."""
    if found is None:
        return log.deadline, None
    if found.is_to_set:
        return found.best, None
    return log.deadline, found.best if found.is_worth_a_try else None
