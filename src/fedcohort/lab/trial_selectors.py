"""The selectors of a comparison, and what each of them may know."""

from collections.abc import Callable, Sequence
from functools import partial

from fedcohort.aggregation.compatibility import check_compatible
from fedcohort.arrays import Floats, Ints
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.runs import RunKey
from fedcohort.selection.lockstep import Lockstep
from fedcohort.selection.registry import Federation, make_selector

ProbeLosses = Callable[[list[int], Ints], Floats]  # rows and clients of each to their losses


def make_selectors(
    config: ComparisonConfig,
    keys: Sequence[RunKey],
    success_rates: Floats,
    data_sizes: Ints,
    probe_losses: ProbeLosses,
) -> Lockstep:
    """Return the selectors of all runs: one per scheme, or one per run.

    Where the server knows who is offline, runs of one scheme may ask cohorts of different size,
    and a selector cannot.

    Args:
        config: The settings.
        keys: Which run each row is.
        success_rates: How often each client answers, [K] or [runs, K].
        data_sizes: How many samples each client trains on, [runs, K].
        probe_losses: Returns the losses of clients under the current models of some rows.

    Raises:
        ValueError: If a scheme needs what is not known, or a rule cannot weigh its cohorts.
    """
    selectors = []
    counts = []
    for name in config.selectors:
        rows = [row for row, key in enumerate(keys) if key.selector == name]
        parts = [[row] for row in rows] if config.knows_offline else [rows]
        for part in parts:
            federation = Federation(
                config.clients,
                config.cohort,
                rng=[keys[row].seed for row in part],
                horizon=config.rounds,
                success_rates=success_rates[part] if success_rates.ndim > 1 else success_rates,
                loss_of=partial(probe_losses, part),
                candidates=config.candidates,
                eta=config.eta,
                sampler=config.sampler,
                data_sizes=data_sizes[part],
                deadline=config.seconds_until_deadline,
            )
            selector = make_selector(name, federation)
            for row in part:
                check_compatible(keys[row].aggregation, name, selector, config.knows_offline)
            selectors.append(selector)
            counts.append(len(part))
    return Lockstep(selectors, counts)
