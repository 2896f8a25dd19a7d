"""From times to scores: the lab's curve, the means of the suites, the total and its gate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from judge.case import Case, Suite
from judge.record import Baseline, CaseResult, Score, SuiteScore, Timing
from judge.verdict import Rules, Verdict

GATE_SUITE = "correctness"
"""The suite whose failure sets the total to 0. It goes by its name and not by its form: were any
untimed suite a gate, passing the smoke cases alone would open it."""

BEST_SCORE = 120.0


def case_score(time_ms: float, t100_ms: float, t60_ms: float) -> float:
    """Score of one case, 0 to 120, from its median and its baseline (the lab's curve).

    With p = t100 / time and p60 = t100 / t60: linear through 0 and (p60, 60), then to (1, 100),
    then 20 a multiple of t100's speed, up to 120.

    Raises ValueError where a time is not finite and positive, or t60 is not above t100.
    """
    if not (0 < time_ms < math.inf and 0 < t100_ms < t60_ms < math.inf):
        raise ValueError(_impossible(time_ms, t100_ms, t60_ms))
    p = t100_ms / time_ms
    p60 = t100_ms / t60_ms
    if p <= p60:
        return 60.0 * p / p60
    if p <= 1.0:
        return 60.0 + 40.0 * (p - p60) / (1.0 - p60)
    return min(BEST_SCORE, 100.0 + 20.0 * (p - 1.0))


def _impossible(time_ms: float, t100_ms: float, t60_ms: float) -> str:
    for name, value in (("time", time_ms), ("t100", t100_ms), ("t60", t60_ms)):
        if not 0 < value < math.inf:
            return f"{name} is {value} ms, not a positive time"
    return f"t60 ({t60_ms} ms) is not above t100 ({t100_ms} ms)"


def result_score(
    case: Case, verdict: Verdict, timing: Timing | None, baseline: Baseline
) -> float | None:
    """What `CaseResult.score` holds: 0.0 for a timed case that failed, None where nothing is due.

    Nothing is due where the case is not timed, did not run (NOT_RUN) or has no time or baseline.
    """
    if not case.timed or verdict is Verdict.NOT_RUN:
        return None
    if verdict is not Verdict.PASS:
        return 0.0
    if timing is None or case.name not in baseline.t100_ms:
        return None
    return case_score(timing.median_ms, baseline.t100_ms[case.name], baseline.t60_ms[case.name])


def speed_up(result: CaseResult, baseline: Baseline) -> float | None:
    """t100 / median of one case: above 1 is faster than t100. None without a time or t100."""
    t100_ms = baseline.t100_ms.get(result.case.name)
    if not result.case.timed or result.timing is None or t100_ms is None:
        return None
    return t100_ms / result.timing.median_ms


def score_run(
    suites: Sequence[Suite],
    results: Iterable[CaseResult],
    *,
    gate_on: bool,
    rules: Rules,
    official: bool,
) -> Score:
    """Suite means, gate and total of one run.

    suites: the suites taken part in, each with all cases of its file, also those not asked for.
    results: the cases that finished, each with its score; NOT_RUN counts as not run.
    gate_on: False for practice (--no-gate). official: whether the clock was CUDA events.

    The total is the weighted mean of the weighted suites, where all of them ran in full and their
    weights make 1; a failed correctness case sets it to 0 when the gate is on. A total that does
    not count (rules broken, gate off or not run, timing not official) is kept as practice.
    """
    finished = [r for r in results if r.verdict is not Verdict.NOT_RUN]
    scored = [_suite_score(suite, finished) for suite in suites]
    gate, gate_reason = _gate(suites, scored, finished, gate_on)
    total, total_reason = _total(scored)
    if total is not None and gate == "failed":
        total = 0.0
    reasons = [total_reason, gate_reason]
    if rules is not Rules.OK:
        reasons.append(f"the submission breaks a rule: {rules}")
    if not official:
        reasons.append("timing is not official (host clock)")
    why_not = "; ".join(reason for reason in reasons if reason)
    return Score(suites=scored, total=total, graded=not why_not, why_not=why_not, gate=gate)


def weights_problem(weights: Mapping[str, float | None]) -> str:
    """One line: why suites of these weights, by name, earn no total; empty where they do."""
    weighted = {name: weight for name, weight in weights.items() if weight is not None}
    if not weighted:
        verb = "earns" if len(weights) == 1 else "earn"
        return f"{' and '.join(weights) or 'nothing'} {verb} no score"
    total = math.fsum(weighted.values())
    if math.isclose(total, 1.0, abs_tol=1e-9):
        return ""
    if len(weighted) == 1:
        return f"{next(iter(weighted))} alone weighs {total:g}, not 1"
    return f"the weights of {' and '.join(weighted)} add up to {total:g}, not 1"


def _suite_score(suite: Suite, finished: Sequence[CaseResult]) -> SuiteScore:
    """One suite's mean; a suite without timed cases counts all its cases and has no score."""
    timed = {case.name for case in suite.cases if case.timed}
    counted = timed or {case.name for case in suite.cases}
    ran = [r for r in finished if r.suite == suite.name and r.case.name in counted]
    scores = [r.score if r.verdict is Verdict.PASS else 0.0 for r in ran] if timed else []
    known = [score for score in scores if score is not None]
    mean = math.fsum(known) / len(known) if known and len(known) == len(scores) else None
    return SuiteScore(
        suite=suite.name,
        weight=suite.weight,
        score=mean,
        cases_run=len(ran),
        cases_total=len(counted),
        complete={r.case.name for r in ran} == counted,
        digest=suite.digest,
    )


def _gate(
    suites: Sequence[Suite],
    scored: Sequence[SuiteScore],
    finished: Sequence[CaseResult],
    gate_on: bool,
) -> tuple[str, str]:
    """The gate's state, and why the total does not count because of it (empty where it does)."""
    if not gate_on:
        return "off", "the gate is off (--no-gate)"
    gate = next((s for s in suites if s.name == GATE_SUITE), None)
    if gate is None:
        return "not_run", f"the gate was not run: no {GATE_SUITE} suite in this run"
    ran = [r for r in finished if r.suite == gate.name]
    if any(r.verdict is not Verdict.PASS for r in ran):
        return "failed", ""
    if {r.case.name for r in ran} != {case.name for case in gate.cases}:
        return "not_run", f"the gate was not run in full: {len(ran)} of {len(gate.cases)} cases"
    return "passed", ""


def _total(scored: Sequence[SuiteScore]) -> tuple[float | None, str]:
    """The weighted mean, or None and the reason why there is none."""
    weighted = [s for s in scored if s.weight is not None]
    for s in weighted:
        if not s.complete:
            return None, f"no total: {s.suite} ran {s.cases_run} of {s.cases_total} timed cases"
    if problem := weights_problem({s.suite: s.weight for s in scored}):
        return None, f"no total: {problem}"
    total = 0.0
    for s in weighted:
        if s.score is None or s.weight is None:
            return None, f"no total: no baseline for {s.suite}"
        total += s.weight * s.score
    return total, ""
