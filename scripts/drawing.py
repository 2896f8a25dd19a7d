"""What pictures of the pages share: PNG and SVG, to be read at page width and in grey print."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import matplotlib

matplotlib.use("agg")
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

WIDTH_INCHES = 7.2
SIZE, SMALL = 9.0, 8.0
COLOURS = ("#1f3b5c", "#c55a11", "#6fae4f", "#6d3a8c", "#7f7f7f")
_DPI = 200
_GRID = "#d9dde2"
_TICKS = [digit * 10.0**power for power in range(-3, 4) for digit in (1, 2, 5)]


def columns(points: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Points as their x and their y."""
    listed = list(points)
    return [x for x, _ in listed], [y for _, y in listed]


def plain_ticks(axis: Axis, span: tuple[float, float]) -> None:
    """1, 2 and 5 times powers of ten, as plain numbers."""
    axis.set_major_locator(FixedLocator([tick for tick in _TICKS if span[0] <= tick <= span[1]]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
    axis.set_minor_locator(FixedLocator([]))


def frame(axes: Axes, grid: str) -> None:
    """A light grid behind what is drawn, and no box around it."""
    axes.grid(axis=grid, color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def save(figure: Figure, stem: Path) -> bool:
    """Write both files. Text stays text in the SVG, and neither holds the time of day."""
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": stem.name}):
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(stem.with_suffix(".png"), dpi=_DPI, metadata={"Software": None})
    return True
