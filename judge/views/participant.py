"""What a participant may see of a record: of hidden cases a number, the verdict and the score."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from judge.case import HIDDEN_SUITE, Case, Suite
from judge.leaderboard import case_names
from judge.record import Baseline, CaseResult, Prediction, Record


def visible_suites(suites: Iterable[Suite]) -> list[Suite]:
    """The suites whose cases a participant may know."""
    return [suite for suite in suites if suite.name != HIDDEN_SUITE]


def participant_view(record: Record) -> Record:
    """The record with its hidden cases called h1, h2, … in the order in which they ran.

    They lose shape, detail, errors, times and all else that tells what they are; the log, which
    names them, loses its path. So do later cases lose their detail, since the child that ran them
    had seen a hidden one. A record without hidden cases comes back as it is.
    """
    hidden = {result.case.name for result in record.results if result.suite == HIDDEN_SUITE}
    if not hidden:
        return record
    results: list[CaseResult] = []
    seen = False
    for name, result in zip(case_names(record), record.results, strict=True):
        if result.suite == HIDDEN_SUITE:
            seen = True
            results.append(_shown(result, name))
        else:
            results.append(replace(result, detail="") if seen else result)
    notes = [note for note in record.notes if not any(name in note for name in hidden)]
    return replace(
        record,
        results=results,
        notes=notes,
        baseline=_without(record.baseline, hidden),
        rivals=[rival for rival in record.rivals if rival.case not in hidden],
        prediction=_predicted(record.prediction, hidden),
        submission=replace(record.submission, log=""),
    )


def _shown(result: CaseResult, name: str) -> CaseResult:
    case = Case(
        name=name,
        batch=0,
        tokens=0,
        qk_heads=0,
        v_heads=0,
        initial_state=None,
        gate=HIDDEN_SUITE,
        gate_value=None,
        beta=None,
        equal_keys=False,
        zero_values=False,
        timed=result.case.timed,
        tolerance=0.0,
    )
    return CaseResult(
        suite=result.suite,
        case=case,
        verdict=result.verdict,
        detail="",
        errors=None,
        timing=None,
        score=result.score,
        seconds={},
    )


def _without(baseline: Baseline, names: set[str]) -> Baseline:
    def rest(by_case: dict) -> dict:
        return {case: value for case, value in by_case.items() if case not in names}

    return replace(
        baseline,
        t100_ms=rest(baseline.t100_ms),
        t60_ms=rest(baseline.t60_ms),
        timings=rest(baseline.timings),
    )


def _predicted(prediction: Prediction | None, names: set[str]) -> Prediction | None:
    if prediction is None:
        return None
    return replace(prediction, times=[one for one in prediction.times if one.case not in names])
