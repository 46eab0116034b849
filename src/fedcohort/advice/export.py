"""The advice as plain values, fit for JSON."""

from typing import Any

from fedcohort.advice.advisor import Advice
from fedcohort.advice.estimates import plain
from fedcohort.advice.selectors import SelectorAdvice
from fedcohort.advice.text import sentences


def to_dict(advice: Advice) -> dict[str, Any]:
    """Return all numbers and sentences of an advice as JSON can hold them.

    Args:
        advice: The advice.
    """
    used = advice.used
    rates = {}
    for place, name in enumerate(used.clients):
        rates[name] = {
            "asked": used.asked_of_client[place],
            "value": advice.rates.mean[place],
            "low": advice.rates.low[place],
            "high": advice.rates.high[place],
        }
    values: dict[str, Any] = plain(
        {
            "source": advice.log.source,
            "rounds": advice.log.num_rounds,
            "rounds_used": used.num_rounds,
            "clients": advice.log.num_clients,
            "notes": advice.log.notes,
            "sentences": [vars(sentence) for sentence in sentences(advice)],
            "success": advice.success,
            "rates": rates,
            "persistence": vars(advice.persistence),
            "together": vars(advice.together),
            "change": vars(advice.change),
            "waste": vars(advice.waste),
            "deadline": None if advice.deadline is None else vars(advice.deadline),
            "cohort": vars(advice.cohort),
            "selector": _selector(advice.selector),
            "rule": vars(advice.rule),
            "training": advice.training,
            "settings": advice.settings,
        }
    )
    return values


def _selector(advice: SelectorAdvice) -> dict[str, Any]:
    """Return the numbers of a comparison of selectors, without those of single runs."""
    values = dict(vars(advice))
    for world in ("fitted", "resampled"):
        rows = {}
        for name, played in values[world].items():
            rows[name] = {
                "arrivals": float(played.arrivals.mean()),
                "least_asked": played.least_asked,
                "jain": float(played.jain.mean()),
            }
        values[world] = rows
    return values
