"""Numbers of pages that no record shows: for each page a list, and each number was looked at.

A number belongs here if it is a setting, a limit, a definition, arithmetic or an invented example,
or if a test of its own prints it again; a comment says which test. A measurement gets a fact or a
filled table instead. Numbers are separated by a comma and a space.
"""

# Pages of results: every number in prose.
SETTINGS = {
    # Settings of the paper and of simulations, Fact 4, and the days on which readings were chosen.
    "DEVIATIONS.md": "4, 8, 20, 400, 2,500, 5,000, 10,000, 2026-11-15, 2026-11-16",
    "results/README.md": "45, 2026-11-15, 2026-11-16",
    # Days, the round T/4, and bounds whose effects tests/paper/test_bounds.py compares.
    "results/claims.md": "200, 625, 2026-11-18, 2026-11-19",
    "results/cohort-size.md": "0",  # a world
    "results/cost.md": "625",  # a quarter of the rounds, where E3CS-inc begins to differ
    "results/other-data.md": "500",
    "results/participation.md": "4, 10, 30, 60, 90, 2,500, 10,000",
    # Sizes of layers and images, settings, rounds that were played, and the days of the choices.
    "results/readings.md": "0, 0.9, 28, 30, 400, 700, 800, 1,024, 1,600, 5,000, "
    "2026-11-15, 2026-11-16",
    # The mean of the rates of the classes, and ratios that test_step_size_in_words.py compares.
    "results/step-size.md": "0.86, 1.09, 47.5, 2,500",
    "results/table3.md": "625, 2,500, 2026-11-15",
    "results/what-helps.md": "0.02, 16, 49, 120, 500, 40,000",
}

# Other pages: numbers with a unit, with a point, or "of" another. None is a measurement.
NOT_MEASURED = {
    # tests/test_readme.py compares the caption, the speed-ups on CIFAR-10 and all tables.
    "README.md": "10 seeds, 20 seeds, 100 of 600, 13.7 of 20, 9.5, 0.5, 1.09×, 1.14×, "
    "45 %, 90 %, 2,500 rounds",
    "CHANGELOG.md": "5 %, 95 %",
    # How often replies are looked for, what was trained, and the version of pfl.
    "docs/benchmarks.md": "0.02 s, 0.1 s, 0.25 s, 0.6, 28 runs, 3 s, 300 rounds",
    "docs/concepts/inclusion-probabilities.md": "0.4, 0.5, 1.6 of the 2",
    "docs/concepts/participation-and-fairness.md": "0.2, 0.5, 20 of 100",
    # Bounds that tests/selection/test_e3cs_tree.py checks.
    "docs/concepts/samplers.md": "1e-9, 1e-11, 1e-100, 1,000 times, 600 rounds",
    # test_the_equal_step_of_compare_is_the_one_on_the_page, and the rates of the paper's classes.
    "docs/concepts/when-selection-matters.md": "0.092, 0.095, 45 %",
    "docs/faq.md": "0.5",
    "docs/glossary.md": "0.1, 0.5, 0.62, 0.67, 2 seeds, 10 %, 30 %, 60 %, 90 %, 62 %, "
    "81 %, 19 points, 13 updates, 500 rounds, 6,657 updates, 40 seconds, 60 seconds, "
    "70 seconds, 80 %, 1,000 rounds, 6 runs",
    "docs/how-to/advise.md": "0 s, 0.4, 0.9, 1 %, 3 %, 5 %, 5 rounds, 500 rounds, 95 %",
    "docs/how-to/aggregation.md": "0.01, 4 MB, 400 MB",
    "docs/how-to/flower.md": "1 MB, 1 kB, 1.0, 1.40, 1.41, 1e9, 1e15, 2 rounds, 2 s, 5 s",
    "docs/how-to/operate.md": "0.9, 1.25, 10 s, 200 times, 5 s, 60 s, 600 s",
    "docs/how-to/replay.md": "20 rounds, 95 %",
    "docs/how-to/report.md": "0.8, 3 MB, 400 points, 5 %, 95 %",  # limits, levels of a test
    "docs/how-to/resume.md": "20 rounds",
    "docs/how-to/selector.md": "1.3, 10 %, 30 %, 60 %, 90 %",
    "docs/how-to/traces.md": "30 seconds",
    "docs/how-to/world.md": "9 times",
    "docs/how-to/worlds.md": "0.1, 0.4, 0.5, 0.6, 0.8, 0.9, 2.2, 30 rounds",
    # test_readme.py compares the caption of the picture.
    "docs/index.md": "100 of 600, 13.7 of 20, 9.5, 20 seeds, 3.11, 600 rounds, 90 %",
    "docs/paper/code.md": "0.1, 0.9",
    "docs/tutorial.md": "0.1, 0.5, 2 seeds, 47.5 %, 60 seconds",
}


def numbers_of(pages: dict[str, str], name: str) -> set[str]:
    """Return the numbers of a page's list; a page without one has none."""
    return set(pages[name].split(", ")) if name in pages else set()
