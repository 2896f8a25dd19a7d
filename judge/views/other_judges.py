"""A Record in the forms of other systems, whose last step this judge can be: CSOJ and Gradescope.

Their pages are read by participants: hidden cases are h1, h2, … there, and say no more than their
verdict and score.
"""

from __future__ import annotations

import msgspec

from judge.record import CaseResult, Record
from judge.scoring import BEST_SCORE
from judge.text import plain
from judge.verdict import Rules, Verdict
from judge.views.participant import participant_view


def csoj_json(record: Record) -> str:
    """CSOJ's result object on one line: score (whole), performance (the same unrounded), info."""
    score, why = final_score(record)
    info = {
        "why": why,
        "gate": record.score.gate,
        "rules": record.submission.rules,
        "official": record.protocol.official,
        "device": record.environment.device_name,
        "suites": {s.suite: s.score for s in record.score.suites if s.score is not None},
        "cases": {one.case.name: _case(one) for one in participant_view(record).results},
    }
    result = {"score": round(score), "performance": round(score, 4), "info": info}
    return msgspec.json.encode(result).decode()


def gradescope_json(record: Record) -> str:
    """Gradescope's results.json: the score, and a test for each case.

    A timed case has max_score 120; an untimed one counts through the gate alone and has no points.
    """
    score, why = final_score(record)
    result = {
        "score": round(score, 2),
        "output": why,
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": [_test(result) for result in participant_view(record).results],
        "leaderboard": [{"name": "score", "value": round(score, 2)}],
    }
    return msgspec.json.format(msgspec.json.encode(result), indent=2).decode()


def final_score(record: Record) -> tuple[float, str]:
    """One number, 0 to 120, and a line on what it is: the total, else the first suite's mean.

    A submission that breaks a rule has 0 where the clock was official.
    """
    rules = record.submission.rules
    if record.protocol.official and rules is not Rules.OK:
        return 0.0, plain(f"breaks a rule: {rules} {record.submission.rules_detail}")
    if record.score.total is not None:
        return record.score.total, plain(record.score.why_not)
    for suite in record.score.suites:
        if suite.score is not None:
            return suite.score, plain(f"mean of {suite.suite}; {record.score.why_not}")
    return 0.0, plain(record.score.why_not)


def _case(result: CaseResult) -> dict[str, str | float | None]:
    told: dict[str, str | float | None] = {"verdict": result.verdict.value}
    if result.case.timed:
        told["score"] = result.score
        told["median_ms"] = result.timing.median_ms if result.timing else None
    if result.detail:
        told["detail"] = plain(result.detail)
    return told


def _test(result: CaseResult) -> dict[str, str | float]:
    passed = result.verdict is Verdict.PASS
    time = f", {result.timing.median_ms:.6f} ms" if result.timing else ""
    detail = f": {plain(result.detail)}" if result.detail else ""
    test: dict[str, str | float] = {
        "name": result.case.name,
        "status": "passed" if passed else "failed",
        "output": f"{result.verdict}{time}{detail}",
        "output_format": "text",
    }
    if result.case.timed:
        test |= {"score": round(result.score or 0.0, 2), "max_score": BEST_SCORE}
    return test
