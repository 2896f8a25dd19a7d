"""What a record is ranked by: its value, how far that may vary, and why it does not count."""

from __future__ import annotations

import math
from collections.abc import Sequence

from judge.brief import AnyRecord, BriefBaseline, BriefResult
from judge.record import Baseline, CaseResult
from judge.scoring import case_score
from judge.verdict import Rules, Verdict

TOTAL = "total"
AnyResult = CaseResult | BriefResult
AnyBaseline = Baseline | BriefBaseline


def value_of(
    record: AnyRecord, named: Sequence[tuple[str, AnyResult]], by: str
) -> tuple[float | None, str]:
    """What a record is ranked by, or None and why it has nothing.

    named: its results by the names that boards give them. by: as for `make_boards`. Where the clock
    is not official no total counts: then the figures are ranked as practice. Without a baseline a
    failed case is worth no more than one that passed: nothing.
    """
    scored = record.baseline.source != "none"
    without = "no baseline, so no scores"
    score, rules = record.score, record.submission.rules
    if record.protocol.official and rules is not Rules.OK:
        return None, f"rules: {rules}"
    if by == TOTAL:
        if score.total is None or (record.protocol.official and not score.graded):
            return None, score.why_not
        return (score.total, "") if scored else (None, without)
    if not scored:
        return None, without
    for suite in score.suites:
        if suite.suite == by:
            if suite.complete:
                return suite.score, without if suite.score is None else ""
            return None, f"{by}: {suite.cases_run} of {suite.cases_total} cases ran"
    for name, result in named:
        if name == by:
            why = without if result.verdict is Verdict.PASS else str(result.verdict)
            return result.score, why if result.score is None else ""
    return None, f"no {by} here"


def practice_of(record: AnyRecord, by: str) -> str:
    """Why what a record is ranked by does not count; empty where it does."""
    if record.protocol.official:
        return ""
    if by == TOTAL:
        return record.score.why_not
    rules = record.submission.rules
    broken = [f"the submission breaks a rule: {rules}"] if rules is not Rules.OK else []
    return "; ".join([*broken, "timing is not official (host clock)"])


def margin_of(record: AnyRecord, named: Sequence[tuple[str, AnyResult]], by: str) -> float:
    """How far a record's value may vary by the measured spread: the mean of its cases' margins."""

    def of(chosen: Sequence[AnyResult]) -> float:
        margins = [score_margin(result, record.baseline) for result in chosen]
        return math.fsum(margins) / len(margins) if margins else 0.0

    def of_suite(suite: str) -> float:
        return of([r for r in record.results if r.suite == suite and r.case.timed])

    if by == TOTAL:
        if not record.score.total:
            return 0.0  # the gate's 0 is no measurement
        return math.fsum(s.weight * of_suite(s.suite) for s in record.score.suites if s.weight)
    if any(suite.suite == by for suite in record.score.suites):
        return of_suite(by)
    return of([result for name, result in named if name == by])


def score_margin(result: AnyResult, baseline: AnyBaseline) -> float:
    """Half of how far a case's score moves between the times p10 and p90 of its calls."""
    name, timing = result.case.name, result.timing
    if result.verdict is not Verdict.PASS or timing is None or name not in baseline.t100_ms:
        return 0.0
    t100, t60 = baseline.t100_ms[name], baseline.t60_ms[name]
    fast, slow = (case_score(ms, t100, t60) for ms in (timing.p10_ms, timing.p90_ms))
    return (fast - slow) / 2
