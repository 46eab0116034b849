"""Bugs in selection, worlds, data, metrics and learning."""

from mutant import Mutant

LARGE = "tests/selection/test_large.py"

MUTANTS = (
    Mutant(
        "E3CS-inc switches one round late",
        "selection/registry.py",
        "step(at=horizon // 4)",
        "step(at=horizon // 4 + 1)",
        ("tests/selection/test_selector_registry.py",),
    ),
    Mutant(
        "the large-federation path is taken for every sampler",
        "selection/weight_store.py",
        'if num_clients < large.LARGE or sampler != "systematic":',
        "if num_clients < large.LARGE:",
        (f"{LARGE}::test_other_samplers_draw_in_large_federations_as_in_small_ones",),
    ),
    Mutant(
        "Lockstep gives the first run's row of available to all",
        "selection/lockstep.py",
        "return self._split(np.asarray(available))",
        "return [np.asarray(available)[0]] * len(self.selectors)",
        ("tests/selection/test_lockstep.py",),
    ),
    Mutant(
        "join keeps the cohort in flight",
        "selection/base.py",
        "values)\n        self._forget_cohort()\n\n    def newcomers",
        "values)\n\n    def newcomers",
        ("tests/selection/test_selector_base.py",),
    ),
    Mutant(
        "epochs are drawn from the world's stream",
        "world/durations.py",
        'as_rng(rng, "epochs")',
        'as_rng(rng, "world")',
        ("tests/world/test_durations.py",),
    ),
    Mutant(
        "durations are drawn from the world's stream",
        "world/durations.py",
        'as_rng(rng, "durations")',
        'as_rng(rng, "world")',
        ("tests/world/test_durations.py",),
    ),
    Mutant(
        "shards of a label hold its samples in the order of the file",
        "data/partitions/shards.py",
        "rng.permutation(len(labels))",
        "np.arange(len(labels))",
        ("tests/data/test_partitions.py",),
    ),
    Mutant(
        "dirichlet deals the samples of a label in the order of the file",
        "data/partitions/dirichlet.py",
        "rng.permutation(len(labels))",
        "np.arange(len(labels))",
        ("tests/data/test_partitions.py",),
    ),
    Mutant(
        "primary-label deals the samples of a label in the order of the file",
        "data/partitions/primary_label.py",
        "rng.permutation(len(labels))",
        "np.arange(len(labels))",
        ("tests/data/test_partitions.py",),
    ),
    Mutant(
        "iid deals the samples in the order of the file",
        "data/partitions/iid.py",
        "rng.permutation(num_samples)",
        "np.arange(num_samples)",
        ("tests/data/test_partitions.py",),
    ),
    Mutant(
        "blocks of the large path are not shuffled",
        "selection/large.py",
        "order = shuffled(block_draws)",
        "order = np.arange(block_draws.size)",
        (f"{LARGE}::test_blocks_are_shuffled_so_that_most_of_a_cohort_may_be_neighbours",),
    ),
    Mutant(
        "the fallback generator of the large path is constant",
        "selection/large.py",
        "np.random.default_rng(int(number * 2**53))",
        "np.random.default_rng(0)",
        (f"{LARGE}::test_draws_that_are_left_to_the_sort_hit_their_targets",),
    ),
    Mutant(
        "newcomers of rpow-d are ranked last",
        "selection/powd.py",
        '{"last_losses": np.inf}',
        '{"last_losses": -np.inf}',
        ("tests/selection/test_powd.py",),
    ),
    Mutant(
        "ties of pow-d and rpow-d are broken by id",
        "selection/candidates.py",
        "candidates = draw_uniformly(num_candidates, selector.shape, present, selector.rng)",
        "candidates = np.sort(\n"
        "        draw_uniformly(num_candidates, selector.shape, present, selector.rng), axis=-1\n"
        "    )",
        ("tests/selection/test_powd.py",),
    ),
    Mutant(
        "ties of FedCS are broken by id",
        "selection/fedcs.py",
        "np.lexsort((self.lots, -rates), axis=-1)",
        'np.argsort(-rates, axis=-1, kind="stable")',
        ("tests/selection/test_fedcs.py",),
    ),
    Mutant(
        "clients that join FedCS have no lots",
        "selection/fedcs.py",
        "return self._draw_lots(count)\n",
        "return np.ones((*self.batch, count))\n",
        ("tests/selection/test_fedcs.py",),
    ),
    Mutant(
        "the corrected bound takes the least rho above 0",
        "metrics.py",
        "max(1.0, float(rho.max()))",
        "max(1.0, float(rho[rho > 0].min()))",
        ("tests/test_metrics.py",),
    ),
    Mutant(
        "max_norm of the engine is strict",
        "learning/engine.py",
        "norms <= self.options.max_norm",
        "norms < self.options.max_norm",
        ("tests/learning/test_engine.py::test_a_change_exactly_as_long_as_the_bound_is_valid",),
    ),
    Mutant(
        "every sampler counts as exact",
        "selection/e3cs.py",
        "self.draws_exactly = sampler in EXACT_SAMPLERS",
        "self.draws_exactly = sampler in SAMPLERS",
        ("tests/aggregation/test_compatibility.py",),
    ),
    Mutant(
        "a model that diverged has the lowest loss",
        "lab/trial.py",
        "np.where(np.isfinite(losses), losses, LARGEST_FLOAT)",
        "np.where(np.isfinite(losses), losses, -LARGEST_FLOAT)",
        ("tests/lab/test_trial_selectors.py",),
    ),
)
