"""The blocks of the champion's page about what the judge found: cases passed, and the score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judge.record import CaseResult
from judge.text import plain
from judge.verdict import Verdict
from scripts.cells import NONE, cell, number
from scripts.champion.goals import LEAST_SCORE, public_score
from scripts.champion.material import Material
from scripts.champion.raw import results_of
from scripts.conditions import protocol_and_calls
from scripts.ladder.versions import FULL_SUITES
from scripts.markdown import NOT_MEASURED, table


def correctness(material: Material) -> Iterator[str]:
    """Cases passed by suite, and the largest errors."""
    record = material.raw.suites
    if record is None:
        yield NOT_MEASURED
        return
    rows = []
    for suite in FULL_SUITES:
        results = list(results_of(record, suite).values())
        passed = sum(one.verdict is Verdict.PASS for one in results)
        errors = [_largest(results, tensor) for tensor in ("output", "final_state")]
        rows.append([suite, f"{passed} of {len(results)}", *errors])
    yield from table(["suite", "passed", "output", "final_state"], rows, left=(0, 2, 3))
    failed = [one for one in record.results if one.verdict is not Verdict.PASS]
    yield ""
    yield (
        "Largest errors in units of the tolerance; 1 is the limit. "
        f"{protocol_and_calls(record)}, sandbox {record.protocol.sandbox}."
    )
    yield from (f"- {one.case.name}: {one.verdict}: {cell(one.detail)}" for one in failed)


def _largest(results: Sequence[CaseResult], tensor: str) -> str:
    found = [
        (error.max_ratio, result.case.name)
        for result in results
        for error in result.errors or ()
        if error.tensor == tensor
    ]
    return "{:.2f} ({})".format(*max(found)) if found else NONE


def score(material: Material) -> Iterator[str]:
    """The public suite on few SMs, baselines live."""
    record = material.raw.few
    if record is None:
        yield NOT_MEASURED
        return
    results = results_of(record)
    rows = [
        [
            case,
            number(result.timing.median_ms if result.timing else None, 4)
            if result.verdict is Verdict.PASS
            else str(result.verdict),
            number(result.gpu_ms, 4),
            number(record.baseline.t100_ms.get(case), 4),
            number(record.baseline.t60_ms.get(case), 4),
            number(result.score, 2),
        ]
        for case, result in results.items()
    ]
    yield from table(["case", "events", "GPU", "t100", "t60", "score"], rows)
    points = public_score(material.raw)
    told = "not known: not all cases ran" if points is None else f"{points:.2f}"
    yield ""
    yield (
        f"Public score: {told} (at least {LEAST_SCORE:g} is asked). Baseline: "
        f"{plain(record.baseline.source)}, {plain(record.baseline.name)}."
    )
