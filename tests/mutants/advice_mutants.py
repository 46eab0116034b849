"""Bugs of the advice: selectors, deadlines, waste, and what is printed of them."""

from mutant import Mutant

PLAYED = "tests/advice/test_advise.py"
PRINTED = ("tests/advice/test_advice_page.py",)

MUTANTS = (
    Mutant(
        "control characters of a reason are printed",
        "advice/broken.py",
        'printable(" ".join(reason.split()))',
        '" ".join(reason.split())',
        PRINTED,
    ),
    Mutant(
        "the least asked clients are found in the rounds that measure them",
        "advice/selector_play.py",
        "for ranked, measured in ((0, 1), (1, 0)):",
        "for ranked, measured in ((0, 0), (1, 1)):",
        (f"{PLAYED}::test_uniform_selection_neglects_nobody_even_if_chance_does",),
    ),
    Mutant(
        "the least asked clients are those that answer least",
        "advice/selector_play.py",
        "np.lexsort((rates, share))",
        "np.lexsort((share, rates))",
        (f"{PLAYED}::test_a_selector_that_always_asks_the_same_clients_neglects_the_others",),
    ),
    Mutant(
        "selectors ask clients that were absent",
        "advice/selector_play.py",
        "play(selector, world, rounds, available=available)",
        "play(selector, world, rounds)",
        (f"{PLAYED}::test_nobody_who_was_absent_is_asked_in_a_round_that_comes_again",),
    ),
    Mutant(
        "one reliable class makes failures of all last longer",
        "advice/settings.py",
        "return min(options, key=change)",
        "return options[0]",
        (f"{PLAYED}::test_failures_last_as_long_in_the_settings_as_in_the_log",),
    ),
    Mutant(
        "rounds without an answer are no waiting",
        "advice/waste.py",
        "(untimed == 0)",
        "(untimed == 0) & (last > 0)",
        ("tests/advice/test_estimators.py",),
    ),
    Mutant(
        "the p-value of a change stands for that of the rounds since",
        "advice/headline.py",
        "{advice.change.rest_p_value:.2g}",
        "{advice.change.p_value:.2g}",
        PRINTED,
    ),
    Mutant(
        "a loss of answers is called a gain",
        "advice/wording.py",
        "if interval.value >= 0:",
        "if True:",
        PRINTED,
    ),
    Mutant(
        "a deadline that nobody saw is to be tried",
        "advice/deadline.py",
        "self.keeps_too_few and not self.is_beyond",
        "self.keeps_too_few",
        ("tests/advice/test_present_deadline.py",),
    ),
    Mutant(
        "a client in quotes is another client",
        "advice/csv_log.py",
        "if '\"' in line:",
        "if False:",
        ("tests/advice/test_csv_log.py",),
    ),
)
