"""Charts as SVG that takes its colours from the page: of samples, of a time's place, of tries.

Nothing in them is a participant's own text. Times are milliseconds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from judge.record import Timing

WIDTH = 320
SAMPLES_HEIGHT = 72
PLACE_HEIGHT = 68
_MARGIN = 10
_INNER = WIDTH - 2 * _MARGIN
_BINS = 40
_FEW = 12  # samples; fewer are drawn one by one
_TAIL = 4.0  # how many times (p90 - p10) a sample may lie beyond them and be drawn in its place
_CHARACTER = 6.4  # width of one at most, in the charts' units


def samples_chart(timing: Timing) -> str:
    """The inside of a chart of how the timed calls are spread.

    Bars by time, the median as a line, p10 to p90 as a band. Samples far off, which would
    press all others together, are drawn at the edge.
    """
    samples = timing.samples_ms
    reach = _TAIL * (timing.p90_ms - timing.p10_ms)
    low = max(timing.min_ms, timing.p10_ms - reach)
    high = min(max(samples), timing.p90_ms + reach)
    span = high - low
    if span <= 0:
        low, span = timing.median_ms * 0.99, timing.median_ms * 0.02

    def x(ms: float) -> float:
        return _MARGIN + _INNER * min(1.0, max(0.0, (ms - low) / span))

    if len(samples) < _FEW:
        bars = "".join(f"M{x(ms):.1f} 22v34" for ms in samples)
        drawn = f'<path class="tick" d="{bars}"/>'
    else:
        drawn = f'<path class="bar" d="{_bars(samples, low, span)}"/>'
    p10, p90, median = x(timing.p10_ms), x(timing.p90_ms), x(timing.median_ms)
    return (
        f'<rect class="band" x="{p10:.1f}" y="14" width="{max(p90 - p10, 1):.1f}" height="42"/>'
        f"{drawn}"
        f'<path class="axis" d="M{_MARGIN} 56h{_INNER}"/>'
        f'<path class="mark" d="M{median:.1f} 14v46"/>'
        f"{_text(median, 10, timing.median_ms, 'strong')}"
        f"{_text(_MARGIN, 69, low, anchor='start')}"
        f"{_text(WIDTH - _MARGIN, 69, low + span, anchor='end')}"
    )


def place_chart(median: float, marks: Sequence[tuple[str, float]], low: float, high: float) -> str:
    """The inside of a chart of where a time lies among others, on a logarithmic scale low to high.

    marks: name and time of each of the others; their names stand above the axis, in rows where
    they would meet.
    """
    scale = _INNER / math.log(high / low)

    def x(ms: float) -> float:
        return _MARGIN + scale * math.log(min(max(ms, low), high) / low)

    parts = [f'<path class="axis" d="M{_MARGIN} 44h{_INNER}"/>']
    ends = [-math.inf, -math.inf, -math.inf]
    for name, ms in sorted(marks, key=lambda mark: mark[1]):
        half = _CHARACTER * len(f"{name} {_number(ms)}") / 2
        at = min(max(x(ms), half), WIDTH - half)
        row = next((row for row, end in enumerate(ends) if at - half > end), len(ends) - 1)
        ends[row] = at + half + 4
        y = 33 - 12 * row
        parts.append(f'<path class="rule" d="M{x(ms):.1f} {y + 3}V48"/>')
        parts.append(f'<text x="{at:.1f}" y="{y}">{name} {_number(ms)}</text>')
    parts.append(f'<circle class="dot" cx="{x(median):.1f}" cy="44" r="5"/>')
    parts.append(_text(x(median), 63, median, "strong"))
    return "".join(parts)


def tries_chart(values: Sequence[float | None], best: float, label: str) -> str:
    """Scores of tries in their order, 0 to `best`; tries without one leave a gap."""
    height, top, long = 96, 14, _INNER - 20  # room for the labels
    step = long / max(1, len(values) - 1)
    lines = [0.0, 60.0, 100.0, best]

    def y(score: float) -> float:
        return top + (height - top - 14) * (1 - score / best)

    parts = [f'<path class="grid" d="M{_MARGIN} {y(line):.1f}h{long}"/>' for line in lines]
    parts += [
        f'<text class="soft" x="{WIDTH}" y="{y(line) + 4:.1f}" text-anchor="end">{line:g}</text>'
        for line in lines[1:]
    ]
    path, pen_down = "", False
    for number, value in enumerate(values):
        if value is None:
            pen_down = False
            continue
        at = f"{_MARGIN + step * number:.1f} {y(value):.1f}"
        path += f"{'L' if pen_down else 'M'}{at}"
        pen_down = True
        parts.append(f'<circle class="dot" cx="{at.split()[0]}" cy="{at.split()[1]}" r="3.5"/>')
    parts.append(f'<path class="line" d="{path}"/>')
    return svg(height, label, "".join(parts))


def medians_chart(medians: Sequence[float], marks: Sequence[tuple[str, float]], label: str) -> str:
    """Where everybody's time lies on a logarithmic scale, a stroke each, with times to compare."""
    every = [*medians, *(ms for _, ms in marks)]
    low, high = min(every) / 1.1, max(every) * 1.1
    scale = _INNER / math.log(high / low)
    x = [_MARGIN + scale * math.log(ms / low) for ms in medians]
    strokes = "".join(f"M{at}v22" for at in dict.fromkeys(f"{one:.1f} 40" for one in x))
    parts = [
        f'<path class="tick" d="{strokes}"/>',
        f'<path class="axis" d="M{_MARGIN} 62h{_INNER}"/>',
        _text(_MARGIN, 75, low, anchor="start"),
        _text(WIDTH - _MARGIN, 75, high, anchor="end"),
    ]
    for row, (name, ms) in enumerate(sorted(marks, key=lambda mark: mark[1])):
        at = _MARGIN + scale * math.log(ms / low)
        half = _CHARACTER * len(f"{name} {_number(ms)}") / 2
        text = min(max(at, half), WIDTH - half)
        y = 34 - 12 * (row % 3)
        parts.append(f'<path class="rule" d="M{at:.1f} {y + 3}V66"/>')
        parts.append(f'<text x="{text:.1f}" y="{y}">{name} {_number(ms)}</text>')
    return svg(78, label, "".join(parts))


def _bars(samples: Sequence[float], low: float, span: float) -> str:
    scale = _BINS / span
    counts = Counter([min(_BINS - 1, int((ms - low) * scale)) if ms > low else 0 for ms in samples])
    width, tallest = _INNER / _BINS, max(counts.values())
    bars = []
    for number, count in sorted(counts.items()):
        x = _MARGIN + width * number
        height = 34 * count / tallest
        bars.append(f"M{x:.1f} 56v{-height:.1f}h{width - 1:.1f}v{height:.1f}z")
    return "".join(bars)


def svg(height: int, label: str, body: str) -> str:
    """A picture. label: what it shows, for who does not see it; escaped already."""
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">'
        f"{body}</svg>"
    )


def _text(x: float, y: int, ms: float, style: str = "", anchor: str = "middle") -> str:
    text = _number(ms)
    half = _CHARACTER * len(text) / 2
    if anchor == "middle":
        x = min(max(x, half), WIDTH - half)
    where = "" if anchor == "middle" else f' text-anchor="{anchor}"'
    kind = f' class="{style}"' if style else ""
    return f'<text{kind} x="{x:.1f}" y="{y}"{where}>{text}</text>'


def _number(ms: float) -> str:
    return f"{ms:.4g}" if ms < 1000 else f"{ms:.0f}"
