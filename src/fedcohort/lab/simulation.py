"""Selection without training: several selectors in one world, many seeds in lock-step.

A *world* is who would answer in which round, fixed by the seed, so every selector meets the same
failures.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from fedcohort import __version__
from fedcohort.arrays import Floats
from fedcohort.lab import folder as run_folder
from fedcohort.lab.config import SimulationConfig, open_world
from fedcohort.lab.config_checks import check_needs_no_training
from fedcohort.lab.recorder import AllocationRecorder, Allocations, read_allocations
from fedcohort.lab.simulation_arrays import (
    Results,
    Shapes,
    as_arrays,
    check_shapes,
    load_results,
)
from fedcohort.lab.simulation_checks import (
    check_are_answers,
    check_has_answers,
    check_playable,
    check_simulation_memory,
)
from fedcohort.lab.simulation_result import SimulationResult, collect
from fedcohort.lab.sources import (
    check_present_sources,
    check_present_world,
    digest_world,
    source_digests,
)
from fedcohort.selection.lockstep import Lockstep
from fedcohort.selection.protocol import Selector
from fedcohort.selection.registry import Federation, make_selector

Progress = Callable[[str, int, int], None]  # name of the part, rounds done, rounds in all


@dataclass(frozen=True, eq=False)
class Simulation:
    """A simulation that was played, and the folder that holds it.

    Attributes:
        folder: Its run folder.
        settings: The stored settings, which also name the experiment and the version.
        config: The configuration in them.
        results: What came of each selector, or of each case of the regret.
    """

    folder: Path
    settings: Mapping[str, Any]
    config: SimulationConfig
    results: Results

    @cached_property
    def allocations(self) -> dict[str, Allocations]:
        """The recorded probabilities by selector, read once."""
        return read_allocations(self.folder)

    @cached_property
    def environment(self) -> dict[str, str]:
        """The versions and the machine it was computed with, read once."""
        return run_folder.read_environment(self.folder)


def simulate(
    config: SimulationConfig,
    on_progress: Progress | None = None,
    recorder: AllocationRecorder | None = None,
) -> Results:
    """Play every selector of a configuration.

    Args:
        config: The settings.
        on_progress: Called with the selector's name, the rounds done and the rounds in all.
        recorder: Records the probabilities of selectors that have any.

    Returns:
        What came of each selector, by name.

    Raises:
        ValueError: If the results do not fit the memory, before anything is played.

    Examples:
        >>> from fedcohort.lab.config import SimulationConfig
        >>> from fedcohort.lab.simulation import simulate
        >>> config = SimulationConfig(("random",), clients=8, cohort=3, rounds=12, seeds=2)
        >>> simulate(config)["random"].counts.shape
        (2, 8)
    """
    check_simulation_memory(config)
    results = {}
    for name in config.selectors:
        results[name] = simulate_selector(config, name, on_progress, recorder)
    return results


def simulate_selector(
    config: SimulationConfig,
    name: str,
    on_progress: Progress | None = None,
    recorder: AllocationRecorder | None = None,
) -> SimulationResult:
    """Play one selector through all rounds, in the world of every seed."""
    world = open_world(config, config.seed_list)
    check_has_answers(config, world)
    selector = _make_selector(config, name, world.success_rates)

    def on_round(done: int) -> None:
        if on_progress:
            on_progress(name, done, config.rounds)

    available = world.available
    before_round = None
    if recorder is not None and isinstance(selector, Lockstep) and available is not None:
        available = recorder.record_online(available, {0: (name, selector.selectors[0])}, start=0)
    elif recorder is not None:
        before_round = partial(recorder.record, name, selector)
    return collect(
        selector,
        check_are_answers(config.world, world.rows),
        world.success_rates,
        rounds=config.rounds,
        runs=config.seeds,
        on_round=on_round,
        before_round=before_round,
        available=available,
        cohort=config.cohort,
    )


def _make_selector(config: SimulationConfig, name: str, success_rates: Floats) -> Selector:
    """Return a selector of all runs, or several where runs may ask cohorts of different size."""
    seeds = config.seed_list
    batches = [[seed] for seed in seeds] if config.knows_offline else [seeds]
    selectors = []
    for position, batch in enumerate(batches):
        own_rates = success_rates
        if success_rates.ndim > 1 and config.knows_offline:
            own_rates = success_rates[[position]]
        federation = Federation(
            config.clients,
            config.cohort,
            rng=batch,
            horizon=config.rounds,
            success_rates=own_rates,
            eta=config.eta,
            sampler=config.sampler,
        )
        selector = make_selector(name, federation)
        check_needs_no_training(name, selector)
        selectors.append(selector)
    if config.knows_offline:
        return Lockstep(selectors, [1] * len(selectors))
    return selectors[0]


# --- On disk -------------------------------------------------------------------------------


def selector_shapes(config: SimulationConfig) -> Shapes:
    """Return the rounds and clients of each selector's result."""
    return dict.fromkeys(config.selectors, (config.rounds, config.clients))


def load_or_simulate(
    experiment: str,
    config: SimulationConfig,
    folder: Path,
    *,
    run: Callable[..., Results] = simulate,
    shapes: Callable[[SimulationConfig], Shapes] = selector_shapes,
    overwrite: bool = False,
    may_hold_others: bool = False,
    on_progress: Progress | None = None,
    recorder: AllocationRecorder | None = None,
) -> Simulation:
    """Return the simulation that a folder holds, or play it and store it there.

    Args:
        experiment: Name that is stored with the settings.
        config: The settings.
        folder: The run folder.
        run: Plays the configuration; called as `simulate` is, without the recorder if there is
            none.
        shapes: The results that a folder must hold.
        overwrite: Whether results that are there are replaced.
        may_hold_others: Whether files that are no simulation may be in the folder, as the reports
            of an artefact are.
        on_progress: Called with the name of the part, the rounds done and the rounds in all.
        recorder: Records the probabilities of selectors that have any.

    Raises:
        ValueError: If the settings cannot be played, or the folder holds something else or is in
            use, before anything is played.
    """
    settings = {"experiment": experiment, "version": __version__, **config.as_dict()}
    run_folder.check_out(folder)
    with run_folder.locked(folder):
        stored = None
        if not overwrite and run_folder.has_simulation(folder):
            with _suggesting_overwrite():
                stored = run_folder.read_simulation_settings(folder)
        is_stored = run_folder.is_same_simulation(settings, stored)
        if not is_stored:
            check_playable(config)  # first: a mistake in the settings is no mistake in the folder
        run_folder.check_simulation_folder(folder, settings, overwrite, may_hold_others, stored)
        if stored is not None:
            check_present_sources(folder, config)
            check_present_world(folder, config)
            with _suggesting_overwrite():
                results = load_results(folder)
                check_shapes(folder, config, results, shapes(config))
            return Simulation(folder, stored, config, results)

        extras = () if recorder is None else (recorder,)
        digests = source_digests(config)
        world_digest = digest_world(config)  # before it is played: it may change meanwhile
        results = run(config, on_progress, *extras)
        run_folder.discard_simulation(folder)
        run_folder.write_environment(folder)
        if recorder is not None:
            recorder.save(folder, first_round=0)
        run_folder.save_simulation(folder, settings, as_arrays(results), digests, world_digest)
    return Simulation(folder, settings, config, results)


@contextmanager
def _suggesting_overwrite() -> Iterator[None]:
    """Say what helps if the results in a folder are damaged."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{error}; add --overwrite to play it again") from None


def load_simulation(
    folder: Path, shapes: Callable[[SimulationConfig], Shapes] | None = None
) -> Simulation:
    """Return the simulation that a folder holds; every file is read once.

    Args:
        folder: The run folder.
        shapes: The results that the folder must hold. None expects one of every selector, unless
            all results are of something else, as the regret's cases are.

    Raises:
        ValueError: If a file is damaged, or the results do not fit the settings.
    """
    settings = run_folder.read_simulation_settings(folder)
    config = simulation_config(folder, settings)
    results = load_results(folder)
    if shapes is not None:
        check_shapes(folder, config, results, shapes(config))
    elif not results or set(results) & set(config.selectors):
        check_shapes(folder, config, results, selector_shapes(config))
    return Simulation(folder, settings, config, results)


def simulation_config(folder: Path, settings: Mapping[str, Any]) -> SimulationConfig:
    """Return the configuration in stored settings, which also name experiment and version."""
    values = {key: settings[key] for key in settings if key not in ("experiment", "version")}
    try:
        return SimulationConfig.from_dict(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{folder} must hold the settings of a simulation, got: {error}") from None
