"""Bugs in the integration with Flower."""

from mutant import Mutant

MUTANTS = (
    Mutant(
        "max_norm of a reply is strict",
        "flower/replies.py",
        "if not norm <= max_norm:",
        "if not norm < max_norm:",
        ("tests/flower/test_replies.py",),
    ),
    Mutant(
        "a round's arrivals are those of all rounds",
        "flower/journal.py",
        '"arrived": _count_arrived(verdicts)',
        '"arrived": totals.arrived',
        ("tests/flower/test_journal.py",),
    ),
    Mutant(
        "fairness leaves out clients that were never asked",
        "flower/journal.py",
        "for name in known]",
        "for name in totals.asked]",
        ("tests/flower/test_journal.py",),
    ),
    Mutant(
        "a resumed journal loses the last finished round",
        "lab/folder/flower.py",
        'row["round"] <= done',
        'row["round"] < done',
        ("tests/flower/test_journal.py",),
    ),
    Mutant(
        "clients of unknown size count as empty",
        "flower/aggregation.py",
        "unknown * float(np.mean(numbers))",
        "unknown * 0.0",
        ("tests/flower/test_aggregation.py",),
    ),
    Mutant(
        "the selector is asked for the round after",
        "flower/training.py",
        "self.selector.select(server_round - 1, available)",
        "self.selector.select(server_round, available)",
        (
            "tests/flower/test_training.py"
            "::test_with_the_same_seed_and_failures_the_cohorts_are_those_of_the_simulation",
        ),
    ),
    Mutant(
        "probabilities are those of the round after",
        "flower/training.py",
        "inclusion_probabilities(self.selector, server_round - 1, available)",
        "inclusion_probabilities(self.selector, server_round, available)",
        (
            "tests/flower/test_training.py"
            "::test_the_journal_has_the_probabilities_with_which_the_round_was_drawn",
        ),
    ),
    Mutant(
        "the distance of models is the sum of distances of arrays",
        "flower/models.py",
        "squares += _squared_distance(model[name], other[name])",
        "squares = (sqrt(squares) + sqrt(_squared_distance(model[name], other[name]))) ** 2",
        ("tests/flower/test_models.py",),
    ),
    Mutant(
        "settings of a strategy are saved as state",
        "flower/strategy_state.py",
        "if number != initial_numbers[depth].get(name):",
        "if number is not None:",
        ("tests/flower/test_strategy_state.py",),
    ),
    Mutant(
        "one client joins, however many came",
        "flower/selection.py",
        "selector.join(num_clients - selector.num_clients)",
        "selector.join(1)",
        ("tests/flower/test_selection.py",),
    ),
    Mutant(
        "the newest node wins over a registered one",
        "flower/clients.py",
        "bool(nodes[node].name), nodes[node].last_activated_at, node",
        "nodes[node].last_activated_at, bool(nodes[node].name), node",
        ("tests/flower/test_identity.py",),
    ),
    Mutant(
        "clients fail as in the round after",
        "flower/volatility.py",
        "seed, round - 1, client",
        "seed, round, client",
        ("tests/flower/test_volatility.py",),
    ),
    Mutant(
        "a lost client of the simulation engine is never asked again",
        "flower/clients.py",
        "has_heartbeat = 0 < client.sign_of_life < time() + NO_HEARTBEAT",
        "has_heartbeat = 0 < client.sign_of_life",
        ("tests/flower/test_clients.py",),
    ),
    Mutant(
        "a resumed run needs a whole cohort to begin",
        "flower/run.py",
        "minimum=1 if is_resumed else self.options.cohort_size,",
        "minimum=self.options.cohort_size,",
        ("tests/flower/test_run.py", "tests/flower/test_start.py", "tests/flower/test_pause.py"),
    ),
    Mutant(
        "a silent node is first asked again after two minutes",
        "flower/identity.py",
        "QUERY_TTL * 2.0 ** min(silences - 2, 10)",
        "QUERY_TTL * 2.0 ** min(silences - 1, 10)",
        ("tests/flower/test_identity.py",),
    ),
    Mutant(
        "the last message alone bounds the size of replies",
        "flower/puller.py",
        "        largest = max(largest, size)",
        "        largest = size",
        ("tests/flower/test_reply_sizes.py", "tests/flower/test_puller.py"),
    ),
    Mutant(
        "the largest integer and one fits",
        "flower/models.py",
        "rounded.max() >= float(bounds.max) + 1",
        "rounded.max() > float(bounds.max) + 1",
        ("tests/flower/test_models.py",),
    ),
    Mutant(
        "one client is a majority",
        "flower/layouts.py",
        "if count >= 2 and 2 * count > len(layouts):",
        "if 2 * count > len(layouts):",
        ("tests/flower/test_layouts.py",),
    ),
    Mutant(
        "a private strategy is tried on fewer replies",
        "flower/aggregator.py",
        "kept = [] if is_private else find_working_subset(count, works)",
        "kept = find_working_subset(count, works)",
        ("tests/flower/test_aggregator.py",),
    ),
    Mutant(
        "metrics that some replies lack are common",
        "flower/layouts.py",
        "common &= set(layout.lengths)",
        "common |= set(layout.lengths)",
        ("tests/flower/test_layouts.py",),
    ),
)
