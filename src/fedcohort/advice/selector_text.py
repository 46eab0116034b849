"""What the advice says of selectors, each sentence with the numbers that it rests on."""

from fedcohort.advice.advisor import Advice
from fedcohort.advice.estimates import plain
from fedcohort.advice.headline import why_unsure
from fedcohort.advice.rules import FOUND
from fedcohort.advice.selectors import UNIFORM, SelectorAdvice
from fedcohort.advice.wording import Sentence, more_or_fewer, would_tell
from fedcohort.reports.words import listed

SELECTION_STUDY = (
    "What that does to the accuracy cannot be said from a log: in our study no selector was ahead "
    f"of uniform selection for certain in any of {FOUND['cases']} cases, and FedCS and Oort, which "
    f"ask the reliable, were behind in {FOUND['fedcs-behind']} and {FOUND['oort-behind']}."
)


def describe_selector(advice: Advice) -> list[Sentence]:
    """Return which selector to use, what it gets, and what that does not promise.

    Args:
        advice: The advice.
    """
    found = advice.selector
    uniform = found.fitted[UNIFORM]
    best = found.fitted[found.best]
    numbers = plain(
        {
            "gain": found.gain,
            "present_gain": found.present_gain,
            "resampled_gain": found.resampled_gain,
            "loss": found.loss,
            "risk": found.risk,
        }
    )
    base = f"{uniform.arrivals.mean():.2f} answers per round"
    if not found.is_said:
        text = (
            f"The best selector cannot be said from {advice.used.num_rounds} rounds: "
            f"{why_unsure(advice)}{would_tell(found.more_rounds)}. {_best_guess(found)}"
        )
    elif found.best == UNIFORM:
        verb = "Keep uniform selection" if found.present == UNIFORM else "Select uniformly"
        text = (
            f"{verb} (`{UNIFORM}`, {base}): no selector that asks every fifth of the "
            f"clients {found.fair:g} of its fair share gets more for certain."
        )
    else:
        text = (
            f"{_against_present(found)}`{found.best}` gets {more_or_fewer(found.gain, 2)} answers "
            f"per round than uniform selection ({base}) in a world fitted to the log, and "
            f"{more_or_fewer(found.resampled_gain, 2)} in its own rounds, resampled. The fifth "
            f"of the clients that it asks least is asked {best.least_asked:.2f} of its fair share."
        )
    said = [Sentence("selector", text, found.is_said, numbers)]
    if found.left_out:
        names = listed([f"`{name}`" for name in found.left_out])
        text = (
            f"{names} cannot be compared: a selector that asks more clients gets more answers "
            "whomever it asks. How many to ask is said under Cohort."
        )
        said.append(Sentence("selector", text, is_said=False))
    if not found.agrees and found.best != found.present:
        text = (
            "The two ways disagree: trust the gain no further than the smaller of them, and try "
            "it before you rely on it."
        )
        said.append(Sentence("selector", text, False, numbers))
    greedy = max(found.fitted, key=lambda name: float(found.fitted[name].arrivals.mean()))
    if not found.is_fair(greedy):
        other = found.fitted[greedy]
        text = (
            f"`{greedy}` gets the most answers ({other.arrivals.mean():.2f}), but "
            f"{_neglects(found, greedy)}."
        )
        said.append(Sentence("selector", text, numbers=plain({"arrivals": other.arrivals.mean()})))
    said.append(Sentence("selector", SELECTION_STUDY, is_said=False))
    return said


def _against_present(found: SelectorAdvice) -> str:
    """Return what the recommended selector gets beyond the one that runs, if that is another."""
    if found.present is None or found.present == UNIFORM:
        return ""
    if found.present == found.best:
        return f"Keep `{found.best}`. "
    gain = more_or_fewer(found.present_gain, 2)
    return f"`{found.best}` gets {gain} answers per round than {_present(found)}. "


def _present(found: SelectorAdvice) -> str:
    """Return the selector that runs now in words, and whom it neglects if it is unfair."""
    if found.present in (None, UNIFORM):
        return "uniform selection"
    if found.is_fair(found.present):
        return f"`{found.present}`, which runs now"
    return f"`{found.present}`, which runs now and {_neglects(found, found.present)}"


def _neglects(found: SelectorAdvice, name: str) -> str:
    share = found.fitted[name].least_asked
    return f"asks a fifth of the clients only {share:.2f} of its fair share"


def _best_guess(found: SelectorAdvice) -> str:
    """Return the best guess, compared with the selector that runs or else with uniform."""
    answers = f"{found.fitted[found.best].arrivals.mean():.2f} answers per round"
    others = "no other that is fair gets more for certain"
    if found.best == UNIFORM:
        verb = "Keep uniform selection" if found.present == UNIFORM else "Select uniformly"
        return f"{verb} until then (`{UNIFORM}`, {answers}): {others}."
    if found.best == found.present:
        uniform = f"uniform selection would get {found.fitted[UNIFORM].arrivals.mean():.2f}"
        return f"Keep `{found.best}` until then ({answers}; {uniform}): {others}."
    gain = more_or_fewer(found.present_gain, 2)
    return f"The best guess is `{found.best}`: {gain} answers per round than {_present(found)}."
