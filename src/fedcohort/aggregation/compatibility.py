"""Refuse rules whose weights would be wrong with a selector, before the first round."""

from fedcohort.aggregation.registry import find_rule


def check_compatible(
    aggregation: str, selector_name: str, selector: object, knows_offline: bool = False
) -> None:
    """Refuse a rule whose weights would be wrong with a selector.

    Args:
        aggregation: Name of the rule, as for `find_rule`.
        selector_name: Name of the selector, for the message.
        selector: The selector, which declares what it offers. What it does not declare is not
            refused.
        knows_offline: Whether the server knows who is offline before it asks.

    Raises:
        ValueError: If the rule divides by inclusion probabilities that the selector does not
            know or does not draw with, or by true success rates where rounds close before all have
            answered or where the weights of the selector count absence already.

    Examples:
        >>> class Candidates:
        ...     ranks_candidates = True
        >>> check_compatible("normalised", "candidates", Candidates())
        >>> check_compatible("inverse-estimated", "candidates", Candidates())
        Traceback (most recent call last):
        ...
        ValueError: aggregation must not divide by inclusion probabilities with the selector \
'candidates', which does not know them, got 'inverse-estimated'
    """
    rule = find_rule(aggregation)
    if rule.needs_inclusion and getattr(selector, "ranks_candidates", False):
        raise ValueError(
            "aggregation must not divide by inclusion probabilities with the selector "
            f"{selector_name!r}, which does not know them, got {aggregation!r}"
        )
    if rule.needs_inclusion and not getattr(selector, "draws_exactly", True):
        raise ValueError(
            "aggregation must not divide by inclusion probabilities with the selector "
            f"{selector_name!r}, whose sampler misses them, got {aggregation!r}; "
            "use the sampler systematic"
        )
    if rule.needs_rates and getattr(selector, "enough", None) is not None:
        raise ValueError(
            "aggregation must not divide by true success rates with the selector "
            f"{selector_name!r}, whose rounds close before slow clients answer, "
            f"got {aggregation!r}; use inverse-estimated"
        )
    if rule.needs_rates and knows_offline and getattr(selector, "has_own_weights", False):
        raise ValueError(
            "aggregation must not divide by true success rates with the selector "
            f"{selector_name!r}, whose weights count absence already, where the server knows who "
            f"is offline, got {aggregation!r}; use inverse-estimated"
        )
