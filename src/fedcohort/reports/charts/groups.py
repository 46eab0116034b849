"""Who is left out: accuracy of the model for each class of clients, and for each label."""

from collections.abc import Callable, Sequence

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.reports.charts.seeds import SPREAD, Groups, with_spread
from fedcohort.reports.charts.specification import Axis, Chart, GroupedDots, Layout, Panel
from fedcohort.reports.findings import SchemeResults
from fedcohort.reports.palette import scheme_style
from fedcohort.reports.words import percent, three_digits
from fedcohort.statistics import mean_of_known, sd

MOST_LABELS = 40  # of which dots can be told apart


def accuracy_per_class(
    groups: Groups, class_rates: Sequence[float], *, highlighted: Sequence[str] = ()
) -> Chart:
    """Return dots of the final accuracy on the test samples of each class of clients.

    Args:
        groups: Schemes by kind of run. Schemes without that record are left out.
        class_rates: Mean success rate of each class. Fewer than two classes have no panel.
        highlighted: Schemes that the page highlights.
    """
    labels = class_labels(class_rates)
    panels = {}
    if len(labels) > 1:
        about = f"Final accuracy by how often the clients of a class answer, {'/'.join(labels)}"
        panels = _panels(groups, lambda scheme: scheme.class_accuracy, labels, about)
    return Chart(
        id="left-out",
        title="Who is left out",
        caption=with_spread(
            "Accuracy in the end on the test samples of the clients of each class. Classes are "
            "told apart by how often their clients answer.",
            groups,
            SPREAD,
        ),
        x=Axis("how often the class answers", column="success rate"),
        y=Axis("final accuracy"),
        panels=panels,
        layout=Layout(columns=1, width=6.5, height=2.6),
        highlighted=highlighted,
    )


def accuracy_per_label(groups: Groups) -> Chart:
    """Return dots of the final accuracy on the test samples of each label.

    Args:
        groups: Schemes by kind of run. Schemes without that record are left out, and so are
            data sets of more than 40 labels.
    """
    panels = {}
    count = _num_labels(groups)
    if 1 < count <= MOST_LABELS:
        labels = [str(label) for label in range(count)]
        about = f"Final accuracy by label, {'/'.join(labels)}"
        panels = _panels(groups, lambda scheme: scheme.label_accuracy, labels, about)
    return Chart(
        id="labels-left-out",
        title="Which labels are left out",
        caption=with_spread(
            "Accuracy in the end on the test samples of each label. Where failures follow the "
            "labels, those of the clients that fail are learnt worst.",
            groups,
            SPREAD,
        ),
        x=Axis("label"),
        y=Axis("final accuracy"),
        panels=panels,
        layout=Layout(columns=1, width=6.5, height=2.6),
    )


def _num_labels(groups: Groups) -> int:
    for schemes in groups.values():
        for scheme in schemes.values():
            if scheme.label_accuracy is not None:
                return int(scheme.label_accuracy.shape[1])
    return 0


def _panels(
    groups: Groups,
    accuracy_of: Callable[[SchemeResults], Floats | None],
    labels: Sequence[str],
    about: str,
) -> dict[str, Panel]:
    """Return a panel of dots for each kind of run that recorded the accuracies [S, labels]."""
    panels = {}
    for kind, schemes in groups.items():
        dots = []
        words = []
        for name, scheme in schemes.items():
            accuracy = accuracy_of(scheme)
            if accuracy is None or np.isnan(accuracy).all():
                continue
            means = mean_of_known(accuracy)
            spreads = [sd(values[~np.isnan(values)]) for values in accuracy.T]
            dots.append(GroupedDots(name, scheme_style(name), labels, means, np.array(spreads)))
            words.append(f"{name} {'/'.join(three_digits(mean) for mean in means)}")
        if dots:
            panels[kind] = Panel(dots, f"{about}: {'; '.join(words)}.")
    return panels


def class_labels(class_rates: Sequence[float]) -> list[str]:
    """Return the success rate of each class in percent, with its number where two are equal.

    Args:
        class_rates: Mean success rate of each class.

    Examples:
        >>> print(*class_labels([0.5, 0.5]), sep="; ")
        50 % (class 1); 50 % (class 2)
    """
    return number_equal([percent(rate) for rate in class_rates])


def number_equal(labels: Sequence[str]) -> list[str]:
    """Return the labels of classes, with their numbers where two are equal.

    Args:
        labels: One label for each class.

    Examples:
        >>> number_equal(["0.5", "0.1", "0.5"])
        ['0.5 (class 1)', '0.1 (class 2)', '0.5 (class 3)']
    """
    if len(set(labels)) == len(labels):
        return list(labels)
    return [f"{label} (class {number})" for number, label in enumerate(labels, start=1)]
