"""Draws charts as SVG for the page.

`draw.draw_panel` draws one panel. `scales` turns values into places, `frame` draws the axes, and
each of the other modules draws the kinds of series that it is named after.
"""
