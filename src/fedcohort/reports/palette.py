"""One colour and one kind of line per scheme, the same in print and on the page.

The colours are Okabe and Ito's, which colour-blind readers can tell apart. A scheme gets its
style from its place in the list of selectors, so a new selector needs no edit here.
"""

from dataclasses import dataclass

from fedcohort.selection.registry import PAPER_SELECTORS, SELECTORS

# Ordered so that neighbours differ clearly. The last colour is the neutral one.
COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#D55E00",
    "#56B4E9",
    "#000000",
    "#999933",
    "#595959",
)
# The same colours on a dark page, lighter where they would be hard to see.
COLOURS_ON_DARK = (
    "#4A9FE0",
    "#E69F00",
    "#2DBB92",
    "#E08FBD",
    "#F07A2B",
    "#8CCBF2",
    "#F2F2F2",
    "#C2C25A",
    "#A6A6A6",
)
# These schemes come first. The others follow in the order of the registry.
FIRST_SCHEMES = (*PAPER_SELECTORS, "e3cs-robust")
NEUTRAL = len(COLOURS) - 1
NUM_HUES = NEUTRAL
NUM_DASHES = 4


@dataclass(frozen=True)
class Style:
    """The colour and the kind of line of a series.

    Attributes:
        colour: Place in `COLOURS` and in `COLOURS_ON_DARK`.
        dash: Kind of line: 0 solid, 1 dashed, 2 dash-dotted, 3 dotted.
    """

    colour: int
    dash: int = 0


def scheme_style(name: str) -> Style:
    """Return the style of a scheme, which is the same in every figure.

    A scheme's place in the list of selectors decides. The first 32 get different styles.

    Args:
        name: Name of the scheme. A name that is not a registered selector gets a solid line in
            a colour that depends on its letters.
    """
    others = [selector for selector in SELECTORS if selector not in FIRST_SCHEMES]
    order = [*FIRST_SCHEMES, *others]
    if name not in order:
        return Style(colour=sum(name.encode()) % NUM_HUES)

    place = order.index(name)
    colours_used_up = place // NUM_HUES
    return Style(colour=place % NUM_HUES, dash=(place + colours_used_up) % NUM_DASHES)
