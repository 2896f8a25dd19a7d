"""What the ladder is held to, and whether its records meet it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from judge.record import Record
from scripts.goal import UNKNOWN, Goal
from scripts.ladder.records import Ladder
from scripts.ladder.report import TIE
from scripts.ladder.versions import (
    FULL_SUITES,
    PUBLIC_SUITE,
    REFERENCE,
    SUBMITTED,
    VERSIONS,
    Fate,
    surprise,
)
from scripts.names import LARGE

LIKE_THE_LAB = 16
"""The most SMs on which the report's order is asked for: the slice has 14, Hopper grants 16."""

SHORT, SHORT_GAIN = "short_tail_state", 0.8
BOUNDS_MS = {
    "long_low_gva": 1.45,
    "wide_gva_state": 0.40,
    "deep_gva_state": 0.75,
    "chain_equal": 0.27,
    SHORT: 0.060,
}
"""The most that v14 may take on all SMs of an H200."""


def goals(ladders: Sequence[Ladder]) -> Iterator[Goal]:
    """Every demand on the ladder."""
    whole = next((ladder for ladder in ladders if ladder.whole), None)
    yield from _fates(whole)
    few = [ladder for ladder in ladders if ladder.sms <= LIKE_THE_LAB]
    if not few:
        yield Goal(f"the report's order on {LIKE_THE_LAB} SMs or fewer", UNKNOWN, None)
    for ladder in few:
        where = f"on {ladder.title}"
        old, new = "v05_adaptive_dv", "v06_warp_specialized"
        yield _within(ladder, f"v06 is faster than v05 {where}", new, old, LARGE, 1 / (1 + TIE))
        for later in (REFERENCE, SUBMITTED):
            asked = (
                f"{VERSIONS[later].short} is within {100 * TIE:.0f} % of v06, or faster, {where}"
            )
            yield _within(ladder, asked, later, new, LARGE, 1 + TIE)
        asked = f"v14 takes at most {100 * SHORT_GAIN:.0f} % of v07's {SHORT} {where}"
        yield _within(ladder, asked, SUBMITTED, REFERENCE, [SHORT], SHORT_GAIN)
    for case, most in BOUNDS_MS.items():
        median = whole.median(SUBMITTED, case) if whole else None
        found = UNKNOWN if median is None else f"{median:.3f} ms"
        holds = None if median is None else median <= most
        yield Goal(f"v14 on all SMs: {case} at most {most:.3f} ms", found, holds)


def _fates(whole: Ladder | None) -> Iterator[Goal]:
    for fate in Fate:
        names = [version.name for version in VERSIONS.values() if version.fate is fate]
        records = whole.records if whole else {}
        missing = [VERSIONS[name].short for name in names if not _in_full(records, name)]
        told = [
            f"{VERSIONS[name].short}: {problem}"
            for name in names
            if name in records and (problem := surprise(VERSIONS[name], records[name]))
        ]
        found = [*told, *([f"not measured in full: {', '.join(missing)}"] if missing else [])]
        holds = False if told else None if missing else True
        asked = f"{fate}: {', '.join(VERSIONS[name].short for name in names)}"
        yield Goal(asked, "; ".join(found) or "all of them", holds)


def _in_full(records: Mapping[str, Record], name: str) -> bool:
    """Whether a version has a record of all suites that it must be judged on."""
    if name not in records:
        return False
    complete = {suite.suite for suite in records[name].score.suites if suite.complete}
    return complete >= set(FULL_SUITES if VERSIONS[name].kept else (PUBLIC_SUITE,))


def _within(
    ladder: Ladder, asked: str, version: str, of: str, cases: Sequence[str], most: float
) -> Goal:
    """Whether a version takes at most `most` times another one's time on every case."""
    ratios = [ladder.ratio(version, of, case) for case in cases]
    known = [ratio for ratio in ratios if ratio is not None]
    if len(known) < len(ratios):
        return Goal(asked, UNKNOWN, None)
    found = ", ".join(f"{ratio:.2f}" for ratio in known)
    return Goal(
        asked, f"{found} of {VERSIONS[of].short}'s time", all(ratio <= most for ratio in known)
    )
