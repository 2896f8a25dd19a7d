"""The stall breakdown as a picture, PNG and SVG; matplotlib draws it and may be missing."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from judge.profiling.metrics import KernelProfile, representatives
from judge.profiling.stalls import SELECTED, label
from judge.text import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HOW_TO_GET = "no picture: matplotlib is not installed; pip install matplotlib (the extra [profile])"
MAX_KERNELS = 3
_LEAST_SHARE = 0.005
_STALL_COLOUR = "#1f4e79"
_ISSUE_COLOUR = "#9aa5b1"
_DPI = 200
_WIDTH_INCHES = 7.2
_BAR_INCHES = 0.27
_FRAME_INCHES = 1.4


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw_stalls(launches: Sequence[KernelProfile], title: str, stem: Path) -> list[Path]:
    """Draw where the warps' cycles go, a panel a kernel, as <stem>.png and <stem>.svg.

    The launch of median duration stands for a kernel; of many kernels the longest three are
    drawn. States below 0.5 % become one bar. Nothing is drawn where no launch has stalls.
    """
    import matplotlib

    matplotlib.use("agg")
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text, to be found and edited
    drawn = [launch for launch in representatives(launches) if launch.stalls][:MAX_KERNELS]
    if not drawn:
        return []
    bars = [_bars(launch) for launch in drawn]
    heights = [_FRAME_INCHES + _BAR_INCHES * len(of_kernel) for of_kernel in bars]
    figure = Figure(figsize=(_WIDTH_INCHES, sum(heights) + 0.4), layout="constrained")
    figure.suptitle(plain(title, 90), fontsize=11, fontweight="bold", parse_math=False)
    panels = figure.subplots(len(drawn), 1, squeeze=False, height_ratios=heights)
    for axes, launch, of_kernel in zip(panels[:, 0], drawn, bars, strict=True):
        _draw_panel(axes, launch, of_kernel)
    files = [stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg")]
    for file in files:
        figure.savefig(file, dpi=_DPI)
    return files


def _bars(launch: KernelProfile) -> list[tuple[str, float, float, str]]:
    """Label, share, cycles and colour of each bar, longest first."""
    bars = [
        (
            "selected (issuing)" if stall.reason == SELECTED else label(stall.reason),
            stall.share,
            stall.cycles,
            _ISSUE_COLOUR if stall.reason == SELECTED else _STALL_COLOUR,
        )
        for stall in launch.stalls
        if stall.share >= _LEAST_SHARE
    ]
    rest = [stall for stall in launch.stalls if 0 < stall.share < _LEAST_SHARE]
    if rest:
        share, cycles = sum(s.share for s in rest), sum(s.cycles for s in rest)
        bars.append((f"{len(rest)} others", share, cycles, _STALL_COLOUR))
    return bars


def _draw_panel(
    axes: Axes, launch: KernelProfile, bars: Sequence[tuple[str, float, float, str]]
) -> None:
    labels, shares, cycles, colours = zip(*bars, strict=True)
    places = range(len(bars))
    axes.barh(places, [100 * share for share in shares], height=0.72, color=colours)
    axes.set_yticks(places, labels)
    axes.invert_yaxis()
    axes.set_xlim(0, max(10.0, 118 * max(shares)))
    for place, share, value in zip(places, shares, cycles, strict=True):
        axes.annotate(
            f"{100 * share:.1f} % ({value:.2f})",
            (100 * share, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    total = sum(stall.cycles for stall in launch.stalls)
    axes.set_xlabel(
        f"share of warp cycles, %  (in brackets: cycles an issued instruction, {total:.2f} in all)",
        fontsize=8.5,
    )
    axes.set_title(_heading(launch), fontsize=9, loc="left", parse_math=False)
    axes.tick_params(axis="both", labelsize=8.5)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="#d9dde2", linewidth=0.6)
    axes.set_axisbelow(True)


def _heading(launch: KernelProfile) -> str:
    """The kernel's name, and below it what the bars are to be read with."""
    parts = []
    if launch.grid:
        parts.append("grid " + " × ".join(str(size) for size in launch.grid))
    if launch.duration_us is not None:
        parts.append(f"{launch.duration_us:,.1f} µs")
    for name, value in (
        ("occupancy", launch.occupancy_active_pct),
        ("tensor cores active", launch.tensor_active_pct),
    ):
        if value is not None:
            parts.append(f"{name} {value:.1f} %")
    return f"{plain(launch.kernel, 80)}\n{', '.join(parts)}"
