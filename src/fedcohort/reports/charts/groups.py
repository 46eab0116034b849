"""Who is left out: accuracy of the model for each class of clients."""

from collections.abc import Mapping, Sequence

import numpy as np

from fedcohort.reports.charts.specification import Axis, Chart, GroupedDots, Layout, Panel
from fedcohort.reports.findings import Scheme
from fedcohort.reports.palette import scheme_style
from fedcohort.reports.words import percent, three_digits
from fedcohort.statistics import sd


def accuracy_per_class(
    groups: Mapping[str, Mapping[str, Scheme]],
    class_rates: Sequence[float],
    *,
    highlighted: Sequence[str] = (),
) -> Chart:
    """Return dots of the final accuracy on the test samples of each class of clients.

    Args:
        groups: Schemes by kind of run. Schemes without that record are left out.
        class_rates: Mean success rate of each class. Fewer than two classes have no panel.
        highlighted: Schemes that the page highlights.
    """
    labels = class_labels(class_rates)
    panels = {}
    for kind, schemes in groups.items():
        dots = []
        words = []
        for name, scheme in schemes.items():
            if len(labels) < 2 or scheme.class_accuracy is None:
                continue
            means = scheme.class_means
            if np.isnan(means).all():
                continue
            spreads = [sd(values[~np.isnan(values)]) for values in scheme.class_accuracy.T]
            dots.append(GroupedDots(name, scheme_style(name), labels, means, np.array(spreads)))
            words.append(f"{name} {'/'.join(three_digits(mean) for mean in means)}")
        if dots:
            panels[kind] = Panel(
                dots,
                f"Final accuracy by how often the clients of a class answer, {'/'.join(labels)}: "
                f"{'; '.join(words)}.",
            )
    return Chart(
        id="left-out",
        title="Who is left out",
        caption=(
            "Accuracy in the end on the test samples of the clients of each class. Classes are "
            "told apart by how often their clients answer. Mean ± standard deviation over seeds."
        ),
        x=Axis("how often the class answers", column="success rate"),
        y=Axis("final accuracy"),
        panels=panels,
        layout=Layout(columns=1, width=6.5, height=2.6),
        highlighted=highlighted,
    )


def class_labels(class_rates: Sequence[float]) -> list[str]:
    """Return the success rate of each class in percent, with its number where two are equal.

    Args:
        class_rates: Mean success rate of each class.

    Examples:
        >>> print(*class_labels([0.5, 0.5]), sep="; ")
        50 % (class 1); 50 % (class 2)
    """
    labels = [percent(rate) for rate in class_rates]
    if len(set(labels)) == len(labels):
        return labels
    return [f"{label} (class {number})" for number, label in enumerate(labels, start=1)]
