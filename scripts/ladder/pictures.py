"""The ladder's pictures, PNG and SVG, drawn to be read at page width and in grey print.

Series differ in marker or hatch as well as in colour; a comparison has one scale, and where that is
logarithmic its label says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, rgb_to_hsv
from matplotlib.figure import Figure

from judge.profiling.stalls import SELECTED, label
from judge.verdict import Verdict
from scripts.cells import NONE
from scripts.drawing import COLOURS, SIZE, SMALL, WIDTH_INCHES, columns, frame, plain_ticks, save
from scripts.ladder.records import Ladder, Profile
from scripts.ladder.report import Report
from scripts.ladder.versions import FIRST, REFERENCE, VERSIONS, dropped
from scripts.names import LARGE

_MARKERS = ("o", "s", "^", "D", "v")
_DARK = 0.5  # of black to white: below it black text does not stand out
_SHOWN_STALLS = (
    *("long_scoreboard", "short_scoreboard", "barrier", "wait", "branch_resolving"),
    *("gmma", "math_pipe_throttle", SELECTED),
)
_STALL_FILLS = (
    *(("#1f4e79", ""), ("#7fa3c7", ""), ("#c55a11", "///"), ("#f0c9a8", "")),
    *(("#3f7d20", "\\\\\\"), ("#b9d3a8", "..."), ("#8a5a9e", "xxx"), ("#ffffff", "")),
    ("#c9ced4", ""),
)


def draw_speed_up(
    ladder: Ladder, cases: Sequence[str], span: tuple[float, float], stem: Path
) -> bool:
    """A heat map of v01's median over each version's, darker is faster.

    span: of the ratios in all heat maps, so that they share one scale. False, and no picture, where
    v01 or everything else is missing.
    """
    versions = list(ladder.records)
    if not speed_ups(ladder, FIRST, cases) or len(versions) < 2:
        return False
    rows = [[ladder.ratio(FIRST, version, case) for case in cases] for version in versions]
    figure = Figure(figsize=(WIDTH_INCHES, 0.27 * len(versions) + 1.75), layout="constrained")
    axes = figure.subplots()
    norm = LogNorm(*span)
    values = [[math.nan if value is None else value for value in row] for row in rows]
    image = axes.imshow(values, cmap="Greys", norm=norm, aspect="auto")
    for y, row in enumerate(rows):
        for x, value in enumerate(row):
            text = _verdict_word(ladder, versions[y], cases[x]) if value is None else _short(value)
            dark = value is not None and rgb_to_hsv(image.cmap(norm(value))[:3])[2] < _DARK
            colour = "white" if dark else "black"
            axes.text(x, y, text, ha="center", va="center", fontsize=SMALL, color=colour)
    axes.set_xticks(range(len(cases)), cases, rotation=25, ha="right", fontsize=SMALL)
    axes.set_yticks(range(len(versions)), versions, fontsize=SMALL)
    split = sum(VERSIONS[name].kept for name in versions)
    if 0 < split < len(versions):
        axes.axhline(split - 0.5, color="black", linewidth=1.2)
    axes.tick_params(length=0)
    axes.set_title(f"Times as fast as {FIRST}, {ladder.title}", fontsize=SIZE + 1)
    bar = figure.colorbar(image, ax=axes, pad=0.015, fraction=0.04)
    bar.set_label("v01's median / median (logarithmic)", fontsize=SMALL)
    plain_ticks(bar.ax.yaxis, span)
    bar.ax.tick_params(labelsize=SMALL)
    return save(figure, stem)


def speed_ups(ladder: Ladder, version: str, cases: Sequence[str]) -> list[float]:
    """v01's median over a version's on every case that has both."""
    ratios = (ladder.ratio(FIRST, version, case) for case in cases)
    return [ratio for ratio in ratios if ratio is not None]


def draw_long_cases(ladders: Sequence[Ladder], report: Report, stem: Path) -> bool:
    """Medians of the four long cases by kept version, a panel a budget, on one scale.

    The report's medians of its long cases stand in the panel of the fewest SMs, hollow.
    """
    shown = [
        (ladder, [name for name in ladder.records if VERSIONS[name].kept]) for ladder in ladders
    ]
    shown = [(ladder, versions) for ladder, versions in shown if len(versions) > 1]
    if not shown:
        return False
    figure = Figure(figsize=(WIDTH_INCHES, 3.9), layout="constrained")
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    every: list[float] = []
    names = [v.name for v in VERSIONS.values() if v.kept and any(v.name in own for _, own in shown)]
    for axes, (ladder, _) in zip(panels, shown, strict=True):
        for number, case in enumerate(LARGE):
            points = [
                (names.index(name) + 0.1 * (number - 1.5), median)
                for name in names
                if (median := ladder.median(name, case)) is not None
            ]
            every += [median for _, median in points]
            axes.plot(
                *columns(points),
                color=COLOURS[number],
                marker=_MARKERS[number],
                markersize=4.5,
                linewidth=1.3,
                label=case,
            )
        if ladder is shown[-1][0]:
            every += _draw_report(axes, report, names)
        axes.set_title(ladder.title, fontsize=SIZE)
        axes.set_xticks(range(len(names)), [VERSIONS[n].short for n in names], rotation=60)
        axes.tick_params(labelsize=SMALL)
    span = (min(every) * 0.85, max(every) * 1.2)
    for axes in panels:
        axes.set_yscale("log")
        axes.set_ylim(*span)
        plain_ticks(axes.yaxis, span)
        frame(axes, "y")
    panels[0].set_ylabel("median of a call, ms (logarithmic)", fontsize=SIZE)
    handles, labels = panels[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=SMALL)
    return save(figure, stem)


def _draw_report(axes: Axes, report: Report, names: Sequence[str]) -> list[float]:
    """The report's medians as hollow markers."""
    drawn = []
    for number, case in enumerate(LARGE):
        points = [
            (names.index(name) + 0.1 * (number - 1.5), median)
            for name in names
            if (median := report.median(name, case)) is not None
        ]
        drawn += [median for _, median in points]
        axes.plot(
            *columns(points),
            color=COLOURS[number],
            marker=_MARKERS[number],
            markersize=6.5,
            markerfacecolor="none",
            linestyle=":" if len(points) > 2 else "",
            linewidth=1.0,
            label=f"the report, {report.sms} SMs" if number == 0 else None,
        )
    return drawn


def draw_dropped(ladders: Sequence[Ladder], report: Report, stem: Path) -> bool:
    """The experiments' medians over v07's on the long cases, a panel a budget, on one scale.

    What was wrong has no time, and says so. Crosses in the last panel are the report's ratios.
    """
    shown = [ladder for ladder in ladders if REFERENCE in ladder.records]
    names = [v.name for v in dropped() if any(v.name in ladder.records for ladder in shown)]
    if not names:
        return False
    figure = Figure(figsize=(WIDTH_INCHES, 0.33 * len(names) + 1.7), layout="constrained")
    panels = figure.subplots(1, len(shown), sharey=True, sharex=True, squeeze=False)[0]
    every = [1.0]
    for axes, ladder in zip(panels, shown, strict=True):
        for number, case in enumerate(LARGE):
            points = [
                (ratio, place + 0.13 * (number - 1.5))
                for place, name in enumerate(names)
                if (ratio := ladder.ratio(name, REFERENCE, case)) is not None
            ]
            every += [ratio for ratio, _ in points]
            style = {"color": COLOURS[number], "marker": _MARKERS[number], "markersize": 4.5}
            axes.plot(*columns(points), linestyle="", label=case, **style)
        if ladder is shown[-1]:
            points = [
                (ratio, place)
                for place, name in enumerate(names)
                for case in LARGE
                for ratio in report.relative(name, REFERENCE, case)
            ]
            every += [ratio for ratio, _ in points]
            told = f"the report, {report.sms} SMs"
            axes.plot(*columns(points), "x", color="black", markersize=6, label=told)
        axes.axvline(1.0, color="black", linewidth=0.9)
        axes.set_title(ladder.title, fontsize=SIZE)
        axes.set_yticks(range(len(names)), [VERSIONS[name].short for name in names])
        axes.tick_params(labelsize=SMALL)
    span = (min(every) * 0.85, max(every) * 1.2)
    panels[0].set_xscale("log")
    panels[0].set_xlim(*span)
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    for axes, ladder in zip(panels, shown, strict=True):
        plain_ticks(axes.xaxis, span)
        frame(axes, "x")
        for place, name in enumerate(names):
            if word := _no_times(ladder, name):
                axes.text(1.04, place, word, fontsize=SMALL, va="center", style="italic")
    middle = panels[len(panels) // 2]
    middle.set_xlabel(f"median / {REFERENCE}'s median (logarithmic)", fontsize=SIZE)
    handles, labels = panels[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=SMALL)
    return save(figure, stem)


def draw_public(
    title: str, times: Mapping[str, Mapping[str, float]], cases: Sequence[str], stem: Path
) -> bool:
    """Medians by case, a marker an implementation.

    times: milliseconds by implementation and case; the first is what the others are held against.
    """
    if len(times) < 2:
        return False
    figure = Figure(figsize=(WIDTH_INCHES, 0.34 * len(cases) + 1.5), layout="constrained")
    axes = figure.subplots()
    every: list[float] = []
    for number, (name, by_case) in enumerate(times.items()):
        points = [(by_case[case], place) for place, case in enumerate(cases) if case in by_case]
        every += [median for median, _ in points]
        axes.plot(
            *columns(points),
            linestyle="",
            color=COLOURS[number % len(COLOURS)],
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=6.0,
            markerfacecolor="none" if number > 1 else None,
            label=name,
        )
    span = (min(every) * 0.85, max(every) * 1.2)
    axes.set_xscale("log")
    axes.set_xlim(*span)
    axes.set_ylim(len(cases) - 0.5, -0.5)
    plain_ticks(axes.xaxis, span)
    axes.set_yticks(range(len(cases)), cases)
    axes.tick_params(labelsize=SMALL)
    axes.set_xlabel("median of a call, ms (logarithmic)", fontsize=SIZE)
    axes.set_title(title, fontsize=SIZE + 1)
    frame(axes, "both")
    figure.legend(loc="outside lower center", ncols=5, fontsize=SMALL)
    return save(figure, stem)


def draw_stalls(profiles: Sequence[Profile], stem: Path) -> bool:
    """Where the warps' cycles go, a bar a version and case."""
    if not profiles:
        return False
    figure = Figure(figsize=(WIDTH_INCHES, 0.36 * len(profiles) + 1.9), layout="constrained")
    axes = figure.subplots()
    left = [0.0] * len(profiles)
    rows: list[tuple[str, list[float]]] = [
        (
            "selected (issuing)" if reason == SELECTED else label(reason),
            [p.stall(reason) for p in profiles],
        )
        for reason in _SHOWN_STALLS
    ]
    others = [max(0.0, 1 - sum(shares[n] for _, shares in rows)) for n in range(len(profiles))]
    for (name, shares), (colour, hatch) in zip(
        [*rows, ("others", others)], _STALL_FILLS, strict=True
    ):
        widths = [100 * share for share in shares]
        axes.barh(
            *(range(len(profiles)), widths),
            **{"left": left, "height": 0.7, "color": colour, "hatch": hatch, "label": name},
            edgecolor="black",
            linewidth=0.5,
        )
        left = [a + b for a, b in zip(left, widths, strict=True)]
    axes.set_yticks(
        range(len(profiles)), [f"{VERSIONS[p.version].short}, {p.case}" for p in profiles]
    )
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of warp cycles, %", fontsize=SIZE)
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, fontsize=SMALL)
    return save(figure, stem)


def _verdict_word(ladder: Ladder, version: str, case: str) -> str:
    """What stands where there is no time: the verdict, or a dash where nothing was judged."""
    result = ladder.result(version, case)
    if result is None or result.verdict is Verdict.PASS:
        return NONE
    return result.verdict.replace("_", " ").lower()


def _no_times(ladder: Ladder, version: str) -> str:
    """Why a version has no point in a panel; empty where it has one."""
    if any(ladder.median(version, case) is not None for case in LARGE):
        return ""
    words = {_verdict_word(ladder, version, case) for case in LARGE} - {NONE}
    return ", ".join(sorted(words)) or "not measured"


def _short(value: float) -> str:
    return f"{value:.1f}" if value >= 9.95 else f"{value:.2f}"
