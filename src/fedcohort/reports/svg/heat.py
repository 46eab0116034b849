"""Heat maps: an image of one pixel per cell, which is far smaller than one shape per cell."""

import struct
import zlib
from base64 import b64encode

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats
from fedcohort.reports.charts.specification import Chart, HeatMap
from fedcohort.reports.svg.frame import LETTER, Size, category_axis, number, shortened, text

LEVELS = 254  # of the scale; the level after the last marks the capped cells
# Cividis at equal steps, which colour-blind readers see as we do.
CIVIDIS = (
    (0, 32, 76),
    (0, 47, 110),
    (57, 72, 107),
    (87, 93, 109),
    (112, 113, 115),
    (138, 134, 120),
    (166, 157, 117),
    (196, 182, 108),
    (228, 207, 91),
    (255, 233, 69),
)
CAPPED = (213, 94, 0)
LEGEND_WIDTH = 120


def draw_heat_map(chart: Chart, heat_map: HeatMap, size: Size) -> str:
    """Return the inside of a drawing of probabilities, one column per round.

    Args:
        chart: The chart, for the titles of its axes.
        heat_map: What to draw. The first client is at the bottom.
        size: Size of the drawing.
    """
    names = [shortened(str(client)) for client in heat_map.clients]
    left = min(max(len(name) for name in names) * LETTER + 14, 0.3 * size.width)
    right = size.x_range[1]
    bottom, top = size.y_range
    where = (
        f'x="{number(left)}" y="{number(top)}" width="{number(right - left)}" '
        f'height="{number(bottom - top)}"'
    )
    image = b64encode(png(heat_map.probabilities[::-1], heat_map.marked[::-1])).decode()
    drawn = (
        f'<image {where} preserveAspectRatio="none" class="cells" '
        f'href="data:image/png;base64,{image}"/>'
    )
    wide = Size(size.width, size.height, left=left)
    rounds = [f"{number_of_round:,}" for number_of_round in heat_map.rounds.tolist()]
    columns = _centres(left, right, len(rounds))
    drawn += category_axis(wide, columns, rounds, chart.x.title)
    step = -(-len(names) // 14)
    rows = _centres(bottom, top, len(names))
    for place, name in list(zip(rows, names, strict=True))[::step]:
        x = number(left - 6)
        drawn += f'<text class="tick end" x="{x}" y="{number(place + 4)}">{text(name)}</text>'
    return drawn + f'<text class="title" x="2" y="13">{text(chart.y.title)}</text>' + _legend(right)


def png(shares: Floats, marked: Bools) -> bytes:
    """Return an image with a palette: one pixel for each value between 0 and 1.

    Args:
        shares: [rows, columns] the values, the first row at the top.
        marked: [rows, columns] cells that get the colour of capped ones.
    """
    levels = np.rint(np.clip(shares, 0, 1) * (LEVELS - 1)).astype(np.uint8)
    levels[marked] = LEVELS
    rows, columns = levels.shape
    header = struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)
    # Every row begins with the number of its filter, 0 for none.
    pixels = np.concatenate([np.zeros((rows, 1), np.uint8), levels], axis=1).tobytes()
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"PLTE", _palette().tobytes())
        + _chunk(b"IDAT", zlib.compress(pixels, 9))
        + _chunk(b"IEND", b"")
    )


def _chunk(name: bytes, content: bytes) -> bytes:
    checksum = struct.pack(">I", zlib.crc32(name + content))
    return struct.pack(">I", len(content)) + name + content + checksum


def _palette() -> npt.NDArray[np.uint8]:
    """Return the colours [LEVELS + 1, 3] of all levels and of capped cells."""
    colours = np.array(CIVIDIS, dtype=np.float64)
    places = np.linspace(0, len(colours) - 1, LEVELS)
    palette = np.empty((LEVELS + 1, 3))
    for part in range(3):
        palette[:LEVELS, part] = np.interp(places, np.arange(len(colours)), colours[:, part])
    palette[LEVELS] = CAPPED
    return np.rint(palette).astype(np.uint8)


def _centres(start: float, end: float, count: int) -> list[float]:
    step = (end - start) / max(1, count)
    return [start + step * (place + 0.5) for place in range(count)]


def _legend(right: float) -> str:
    """Return the scale from 0 to 1, and the colour of capped cells."""
    image = b64encode(png(np.linspace(0, 1, 64)[None], np.zeros((1, 64), np.bool_))).decode()
    x = right - LEGEND_WIDTH - 90
    capped = f"rgb{CAPPED}".replace(" ", "")
    return (
        f'<text class="tick end" x="{number(x - 6)}" y="14">0</text>'
        f'<image x="{number(x)}" y="5" width="{LEGEND_WIDTH}" height="10" '
        f'preserveAspectRatio="none" href="data:image/png;base64,{image}"/>'
        f'<text class="tick" x="{number(x + LEGEND_WIDTH + 6)}" y="14">1</text>'
        f'<rect x="{number(right - 56)}" y="5" width="10" height="10" style="fill:{capped}"/>'
        f'<text class="tick" x="{number(right - 42)}" y="14">capped</text>'
    )
