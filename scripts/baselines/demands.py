"""What the baselines are held to, and whether their records meet it."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judge.implementations import CORE, STUDENT
from judge.record import Record
from judge.verdict import Verdict
from scripts.baselines.figures import Earlier
from scripts.baselines.sessions import BUDGETS, FEW, RUNS, Measured, Pair, budget_title
from scripts.baselines.times import (
    WHOLE_PUBLIC,
    Implementation,
    found,
    gpu_ms,
    median,
    own_result,
    predicted,
)
from scripts.baselines.waves import COUNTS
from scripts.goal import UNKNOWN, Goal
from scripts.names import LARGE, PUBLIC_NAMES

GPU_SHARE = 0.05
POINTS = 3.0
SPREAD_SHARE, SPREAD_MS, SHORT_MS = 0.02, 0.003, 0.2
NEEDED = ("flash_qla", "fla")
"""FlashInfer is asked for only where it can be built within the time there is."""


def demands(
    measured: Measured, earlier: Earlier, cases: Sequence[str], submissions: Sequence[str]
) -> Iterator[Goal]:
    """Every demand. cases: the public ones. submissions: all that must have been scored."""
    for budget in BUDGETS:
        yield _table(measured.tables.get(budget), budget, cases)
    whole = measured.tables.get("all")
    for scope, by_name in earlier.graph_ms.items():
        for name, published in by_name.items():
            yield _gpu_times(whole, Implementation(name, scope), published)
    for name in submissions:
        yield _scores(name, measured.pairs.get(name))
    for sms in FEW:
        yield _waves(measured, sms)
    for name in ("flash_qla", "flashinfer"):
        yield _predictions(measured.tables.get("14"), name, cases)
    for name, runs in (measured.runs or {"a submission": []}).items():
        for case in cases:
            yield _spread(name, case, spread_of(runs, case))


def difference(record: Record, case: str, one: Implementation, published: float) -> float | None:
    """gpu_ms over the published figure, less 1."""
    here = gpu_ms(record, case, one)
    return None if here is None else here / published - 1


def score_difference(pair: Pair, case: str) -> float | None:
    """A case's live score less its calibrated one; None where it did not pass twice."""
    both = [own_result(record, case) for record in (pair.live, pair.calibrated)]
    scores = [one.score for one in both if one and one.verdict is Verdict.PASS]
    return None if len(scores) < 2 or None in scores else scores[0] - scores[1]


@dataclass(frozen=True)
class Spread:
    """Medians of repeated runs of one case, in ms, in their order. gpu_ms: median of theirs.

    noisy: in how many of them the judge calls the row so.
    """

    medians: list[float]
    gpu_ms: float | None
    noisy: int

    @property
    def range_ms(self) -> float:
        """From the least to the largest."""
        return max(self.medians) - min(self.medians)

    @property
    def limit_ms(self) -> float | None:
        """How much that may be; None where no GPU time says so."""
        if self.gpu_ms is None:
            return None
        share = SPREAD_SHARE * statistics.median(self.medians)
        return share if self.gpu_ms >= SHORT_MS else share + SPREAD_MS

    @property
    def within(self) -> bool | None:
        """Whether it is below the limit; None where runs are missing, or the limit."""
        if self.limit_ms is None or len(self.medians) < RUNS:
            return None
        return self.range_ms < self.limit_ms


def spread_of(runs: Sequence[Record], case: str) -> Spread | None:
    """Of the runs in which the case passed; None where none did."""
    results = [one for record in runs if (one := own_result(record, case))]
    passed = [one for one in results if one.verdict is Verdict.PASS and one.timing is not None]
    if not passed:
        return None
    known = [one.gpu_ms for one in passed if one.gpu_ms is not None]
    return Spread(
        [one.timing.median_ms for one in passed if one.timing is not None],
        statistics.median(known) if known else None,
        sum(bool(one.noisy) for one in passed),
    )


def _table(record: Record | None, budget: str, cases: Sequence[str]) -> Goal:
    names = ", ".join(PUBLIC_NAMES[name] for name in NEEDED)
    where = budget_title(budget)
    asked = f"extended table on {where}: the submission, {names} on all {len(cases)} cases"
    if record is None:
        return Goal(asked, UNKNOWN, None)
    told, holds = [], True
    for one in (Implementation(STUDENT, CORE), *WHOLE_PUBLIC):
        there = [found(record, case, one) for case in cases]
        timed = sum(median(record, case, one) is not None for case in cases)
        told.append(f"{one.title} {timed}" if any(there) else f"{one.title} not installed")
        if one.name in (STUDENT, *NEEDED):
            holds = holds and timed == len(cases)
    return Goal(asked, ", ".join(told), holds)


def _gpu_times(record: Record | None, one: Implementation, published: dict[str, float]) -> Goal:
    asked = f"gpu_ms of {one.title} within {GPU_SHARE:.0%} of the published one, four large cases"
    asked = asked.replace("%", " %")
    shares = [difference(record, case, one, published[case]) if record else None for case in LARGE]
    known = [share for share in shares if share is not None]
    if not known:
        return Goal(asked, "not in the table" if record else UNKNOWN, None)
    told = ", ".join(
        f"{case} {'unknown' if share is None else f'{100 * share:+.1f} %'}"
        for case, share in zip(LARGE, shares, strict=True)
    )
    if any(abs(share) > GPU_SHARE for share in known):
        return Goal(asked, told, False)
    return Goal(asked, told, True if len(known) == len(shares) else None)


def _scores(name: str, pair: Pair | None) -> Goal:
    asked = f"{name}: live within {POINTS:g} points of calibrated, four large cases"
    if pair is None:
        return Goal(asked, UNKNOWN, None)
    points = [score_difference(pair, case) for case in LARGE]
    told = ", ".join(
        f"{case} {'has no two scores' if point is None else f'{point:+.2f}'}"
        for case, point in zip(LARGE, points, strict=True)
    )
    return Goal(asked, told, all(point is not None and abs(point) <= POINTS for point in points))


def _waves(measured: Measured, sms: int) -> Goal:
    asked = f"waves of {', '.join(map(str, COUNTS))} equal CTAs on {sms} SMs"
    waves = measured.waves.get(sms)
    if waves is None:
        return Goal(asked, UNKNOWN, None)
    pairs = [(waves.found(count), waves.expected(count)) for count in COUNTS]
    told = ", ".join("unknown" if had is None else f"{had:.2f}" for had, _ in pairs)
    wanted = ", ".join(str(wanted) for _, wanted in pairs)
    holds = all(had is not None and round(had) == wanted for had, wanted in pairs)
    return Goal(asked, f"{told} for {wanted}", holds)


def _predictions(record: Record | None, name: str, cases: Sequence[str]) -> Goal:
    one = next(one for one in WHOLE_PUBLIC if one.name == name)
    asked = f"{one.title} predicted for the lab's slice on all {len(cases)} cases"
    if record is None:
        return Goal(asked, UNKNOWN, None)
    count = sum(predicted(record, case, one) is not None for case in cases)
    return Goal(asked, f"on {count}", count == len(cases))


def _spread(name: str, case: str, spread: Spread | None) -> Goal:
    within = f"within {100 * SPREAD_SHARE:g} %, of short calls and 3 µs"
    asked = f"{RUNS} medians of {name} on {case} {within}"
    if spread is None:
        return Goal(asked, UNKNOWN, None)
    limit = "an unknown limit" if spread.limit_ms is None else f"{spread.limit_ms:.4f}"
    told = f"{len(spread.medians)} differ by {spread.range_ms:.4f} ms of {limit} allowed"
    noisy = f"; noisy in {spread.noisy}" if spread.noisy else ""
    return Goal(asked, told + noisy, spread.within)
