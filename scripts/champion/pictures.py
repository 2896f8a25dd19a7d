"""The champion's pictures: a roofline, and a sweep over shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from judge.case import Case
from judge.floor import Ceilings
from scripts.champion.goals import every_shape
from scripts.champion.raw import Raw, Shape
from scripts.drawing import SIZE, SMALL, WIDTH_INCHES, columns, frame, plain_ticks, save
from scripts.sweep_shapes import BATCHES_AND_HEADS, MOST_RATIO, TOKENS
from scripts.work import work_of

_TERA = 1e12
_INTENSITIES = (40.0, 500.0)
_OTHERS = {"color": "#8a8a8a", "marker": ".", "markersize": 3.5}
_STYLES = (
    {"color": "#10243c", "marker": "o", "markersize": 6.0},
    {"color": "#c55a11", "marker": "s", "markersize": 5.0},
    {"color": "#6d3a8c", "marker": "v", "markersize": 5.0},
    {"color": "#2f7d20", "marker": "D", "markersize": 5.0, "markerfacecolor": "none"},
    {"color": "#2f7d20", "marker": "^", "markersize": 5.0, "markerfacecolor": "none"},
    {"color": "#1f6fae", "marker": "P", "markersize": 5.5, "markerfacecolor": "none"},
    {"color": "#b03050", "marker": "X", "markersize": 5.5, "markerfacecolor": "none"},
)
_RATIO_TICKS = (0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.5, 2, 3, 5)
_LINES = ("o", "s", "^", "v", "D", "P", "X", "<", ">", "p", "h", "*")


@dataclass(frozen=True)
class Kernel:
    """What stands in the roofline: GPU times in ms by case. other: a version without a name."""

    name: str
    gpu_ms: Mapping[str, float]
    other: bool = False


def draw_roofline(
    kernels: Sequence[Kernel], cases: Sequence[Case], ceilings: Ceilings, stem: Path
) -> bool:
    """Achieved rate over arithmetic intensity, and beside it the same rates by case.

    Most cases have nearly the same intensity, so that the roofline alone would hide them behind
    each other. False, and no picture, where nothing was measured.
    """
    works = {case.name: work_of(case) for case in cases}
    rates = {
        kernel.name: [
            (case.name, works[case.name].flops / kernel.gpu_ms[case.name] * 1e3 / _TERA)
            for case in cases
            if case.name in kernel.gpu_ms
        ]
        for kernel in kernels
    }
    every = [rate for points in rates.values() for _, rate in points]
    if not every:
        return False
    figure = Figure(figsize=(WIDTH_INCHES, 4.9), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1, 1.45))
    names = [case.name for case in cases]
    numbered = [kernel.name for kernel in kernels if not kernel.other]
    for kernel in kernels:
        number = 0 if kernel.other else numbered.index(kernel.name)
        style = _OTHERS if kernel.other else _STYLES[number % len(_STYLES)]
        # Side by side within a case, in the legend's order.
        shift = 0.0 if kernel.other else 0.11 * (number - (len(numbered) - 1) / 2)
        points = rates[kernel.name]
        left.plot(
            *columns((works[case].intensity, rate) for case, rate in points),
            **{"linestyle": "", "zorder": 2 if kernel.other else 3, **style},
        )
        is_first_other = kernel.other and kernel is next(one for one in kernels if one.other)
        label = "other versions" if is_first_other else None if kernel.other else kernel.name
        right.plot(
            *columns((names.index(case) + shift, rate) for case, rate in points),
            **{"linestyle": "", "zorder": 2 if kernel.other else 3, **style, "label": label},
        )
    span = (min(every) * 0.8, 1.35 * ceilings.flops_per_s / _TERA)
    _draw_roof(left, ceilings, span)
    for place, name in enumerate(names):
        roof = works[name].roof_flops_per_s(ceilings) / _TERA
        right.plot([place - 0.42, place + 0.42], [roof, roof], color="black", linewidth=1.4)
    left.set_yscale("log")
    left.set_ylim(*span)
    plain_ticks(left.yaxis, span)
    left.set_ylabel("achieved TFLOP/s (logarithmic)", fontsize=SIZE)
    right.set_xticks(range(len(names)), names, rotation=35, ha="right")
    right.set_xlim(-0.6, len(names) - 0.4)
    right.set_xlabel("by case; bars: the case's roof", fontsize=SIZE)
    for axes in (left, right):
        axes.tick_params(labelsize=SMALL)
        frame(axes, "y")
    figure.legend(loc="outside lower center", ncols=4, fontsize=SMALL)
    return save(figure, stem)


def _draw_roof(axes: Axes, ceilings: Ceilings, span: tuple[float, float]) -> None:
    peak = ceilings.flops_per_s / _TERA
    ridge = ceilings.flops_per_s / ceilings.bytes_per_s
    low, high = _INTENSITIES
    axes.plot(
        [low, ridge, high],
        [low * ceilings.bytes_per_s / _TERA, peak, peak],
        color="black",
        linewidth=1.4,
    )
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    plain_ticks(axes.xaxis, (low, high))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("FLOP a byte (logarithmic)", fontsize=SIZE)
    above = {"fontsize": SMALL, "va": "bottom"}
    axes.text(high, peak * 1.02, f"{peak:.0f} TFLOP/s", ha="right", **above)
    told = f"{ceilings.bytes_per_s / _TERA:.1f} TB/s"
    middle = (low * ridge) ** 0.5
    axes.text(middle * 0.93, middle * ceilings.bytes_per_s / _TERA, told, ha="right", **above)


def draw_sweep(raw: Raw, stem: Path) -> bool:
    """Ratio to the fastest other over tokens, a line a choice of batch and heads, a panel a gate.

    False, and no picture, where there is no sweep.
    """
    rows = every_shape(raw)
    if not rows:
        return False
    gates = list(dict.fromkeys(row.gate for row in rows))
    figure = Figure(figsize=(WIDTH_INCHES, 3.1 * len(gates) + 1.0), layout="constrained")
    panels = figure.subplots(len(gates), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    every = [row.ratio for row in rows] + [MOST_RATIO]
    span = (min(every) * 0.85, max(every) * 1.15)
    choices = sorted(BATCHES_AND_HEADS, key=lambda sizes: (sizes[0] * sizes[2], sizes))
    for axes, gate in zip(panels, gates, strict=True):
        for number, sizes in enumerate(choices):
            _draw_line(axes, [row for row in rows if row.gate == gate], sizes, number, len(choices))
        axes.axhline(MOST_RATIO, color="black", linewidth=1.0, linestyle="--")
        axes.axhline(1.0, color="black", linewidth=0.6)
        axes.text(TOKENS[-1] * 1.25, MOST_RATIO, f"{MOST_RATIO:g}", fontsize=SMALL, va="bottom")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(TOKENS[0] * 0.8, TOKENS[-1] * 1.7)
        axes.set_ylim(*span)
        ticks = [tick for tick in _RATIO_TICKS if span[0] <= tick <= span[1]]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_xticks(TOKENS, [f"{tokens:,}" for tokens in TOKENS])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.tick_params(labelsize=SMALL)
        axes.set_title(gate, fontsize=SIZE)
        axes.set_ylabel("time / fastest other's (log.)", fontsize=SIZE)
        frame(axes, "both")
    panels[-1].set_xlabel("tokens (logarithmic)", fontsize=SIZE)
    handles, labels = panels[0].get_legend_handles_labels()
    legend = figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=SMALL)
    legend.set_title("batch × query heads → value heads", {"size": SMALL})
    return save(figure, stem)


def _draw_line(
    axes: Axes, rows: Sequence[Shape], sizes: tuple[int, int, int], number: int, of: int
) -> None:
    points = sorted(
        (row.tokens, row.ratio) for row in rows if (row.batch, row.qk_heads, row.v_heads) == sizes
    )
    batch, qk_heads, v_heads = sizes
    # Few chains are light, many are dark.
    shade = 0.68 * (1 - number / (of - 1))
    axes.plot(
        *columns(points),
        color=(shade, shade * 0.75, min(1.0, 0.25 + shade)),
        marker=_LINES[number % len(_LINES)],
        markersize=4.5,
        linewidth=1.0,
        markerfacecolor="none" if number % 2 else None,
        label=f"{batch} × {qk_heads} → {v_heads}",
    )
