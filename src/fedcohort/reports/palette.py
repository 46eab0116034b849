"""One colour and one line per scheme, in every figure on paper and on the screen; safe for the colour-blind."""

# Okabe and Ito's palette, in an order that keeps neighbours apart
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000", "#999933")
# the same on a dark ground: what would sink into it is lighter
ON_DARK = ("#4A9FE0", "#E69F00", "#2DBB92", "#E08FBD", "#F07A2B", "#8CCBF2", "#F2F2F2", "#C2C25A")
COLOURS = {
    "e3cs-0": 0,
    "e3cs-0.5": 1,
    "e3cs-0.8": 2,
    "e3cs-inc": 3,
    "fedcs": 4,
    "random": 5,
    "pow-d": 6,
    "e3cs-robust": 7,
}
STYLES = 4  # kinds of lines: solid, dashed, dash-dotted, dotted


def place_of(name: str) -> int:
    """Return a scheme's place in the palette, the same everywhere; one without a place here gets it from its letters."""
    return COLOURS.get(name, sum(name.encode())) % len(PALETTE)


def colour_of(name: str) -> str:
    """Return a scheme's colour."""
    return PALETTE[place_of(name)]


def style_of(name: str) -> int:
    """Return the kind of a scheme's line; solid for one without a place of its own."""
    return list(COLOURS).index(name) % STYLES if name in COLOURS else 0
