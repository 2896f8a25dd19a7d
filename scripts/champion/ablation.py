"""The blocks of the champion's page about its variants: what each idea is worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judge.verdict import Verdict
from scripts.cells import NONE, number
from scripts.champion.goals import geometric_mean
from scripts.champion.material import Material
from scripts.champion.outcomes import UNCHANGED, Outcome, Outcomes
from scripts.markdown import NOT_MEASURED, table

CLEAR = 0.01
"""A variant whose mean ratio is closer to 1 than this makes no difference."""


def ablation(material: Material) -> Iterator[str]:
    """What the champion takes with one idea off, relative to itself."""
    yield from _variants(material, off=True)


def trials(material: Material) -> Iterator[str]:
    """What it takes with one idea more."""
    yield from _variants(material, off=False)


def _variants(material: Material, off: bool) -> Iterator[str]:
    outcomes = material.raw.variants
    if outcomes is None:
        yield NOT_MEASURED
        return
    cases = list(dict.fromkeys(one.case for one in outcomes.outcomes))
    shown = []
    for change in outcomes.changes:
        if change.off is not off:
            continue
        ratios = [_relative(outcomes, change.name, case) for case in cases]
        mean = geometric_mean([None if isinstance(one, str) else one for one in ratios])
        cells = [one if isinstance(one, str) else f"{one:.3f}" for one in ratios]
        verdict = _verdict(ratios, mean, off)
        shown.append((mean or 0.0, [change.name, *cells, number(mean, 3), verdict]))
    if off:
        shown.sort(key=lambda one: -one[0])
    base = [_outcome(outcomes, UNCHANGED, case) for case in cases]
    first = ["champion, ms", *(number(one.median_ms if one else None, 4) for one in base), NONE, ""]
    name = "without" if off else "tried"
    rows = [first, *(row for _, row in shown)]
    yield from table([name, *cases, "geometric mean", "verdict"], rows, left=(0, -1))
    yield ""
    yield from (f"- `{one.name}`: {one.text}" for one in outcomes.changes if one.off is off)


def _outcome(outcomes: Outcomes, variant: str, case: str) -> Outcome | None:
    found = [one for one in outcomes.outcomes if (one.variant, one.case) == (variant, case)]
    return found[0] if found else None


def _relative(outcomes: Outcomes, variant: str, case: str) -> float | str:
    """A variant's median over the champion's; a word where it is wrong or was not timed."""
    one, champion = (_outcome(outcomes, name, case) for name in (variant, UNCHANGED))
    if one is None or champion is None:
        return NONE
    if one.verdict is not Verdict.PASS:
        return str(one.verdict)
    return one.median_ms / champion.median_ms


def _verdict(ratios: Sequence[float | str], mean: float | None, off: bool) -> str:
    if any(isinstance(one, str) and one != NONE for one in ratios):
        return "wrong"
    if mean is None:
        return "not timed everywhere"
    if abs(mean - 1) < CLEAR:
        return "no difference"
    if off:
        return f"worth {100 * (mean - 1):.1f} %" if mean > 1 else "the champion is better without"
    return f"{100 * (mean - 1):.1f} % slower" if mean > 1 else f"{100 * (1 - mean):.1f} % faster"
