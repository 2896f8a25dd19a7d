"""The block of the ladder's page about scores: the report's, judged here and predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from judge.record import SuiteScore
from judge.text import plain
from scripts.cells import NONE, number
from scripts.ladder.material import Material
from scripts.ladder.records import Ladder, mean_or_none
from scripts.ladder.versions import FULL_SUITES, SUBMITTED, VERSIONS
from scripts.markdown import table


def scores(material: Material) -> Iterator[str]:
    """Scores by version: judged here, and predicted for the lab's slice."""
    columns: list[tuple[str, Callable[[str], str]]] = []
    for ladder in material.ladders:
        if any(record.baseline.source != "none" for record in ladder.records.values()):
            for suite in (*FULL_SUITES[:2], "total"):
                columns.append((f"{suite}, {ladder.title}", _score_of(ladder, suite)))
        if ladder.predicts:
            title = f"public, predicted for the slice from {ladder.title}"
            columns.append((title, _predicted_of(ladder, material.cases)))
    totals = material.report.totals
    measured = {name for ladder in material.ladders for name in ladder.records}
    names = [name for name in VERSIONS if name in totals or name in measured]
    rows = [
        [
            name,
            *(number(totals.get(name, {}).get(part), 2) for part in ("public", "hidden", "total")),
            *(told(name) for _, told in columns),
        ]
        for name in names
    ]
    told = [f"the report's {part}" for part in ("public", "hidden", "total")]
    yield from table(["version", *told, *(title for title, _ in columns)], rows)
    sources = dict.fromkeys(
        f"{ladder.title}: {plain(record.baseline.source)}, {plain(record.baseline.name)}"
        for ladder in material.ladders
        for record in ladder.records.values()
        if record.baseline.source != "none"
    )
    yield ""
    if sources:
        yield f"t100 and t60 are from {'; '.join(sources)}."
    elif not columns:
        yield "No record here has scores yet."
    by_case = [
        [
            case,
            f"{points:g}",
            *(_case_score(ladder, SUBMITTED, case) for ladder in material.ladders),
        ]
        for case, points in material.report.scores[SUBMITTED].items()
    ]
    yield from (
        "",
        f"{SUBMITTED} by case (with fewer SMs, predicted for the slice where it is):",
        "",
    )
    titles = [ladder.title for ladder in material.ladders]
    yield from table(["case", "the report", *titles], by_case)


def _score_of(ladder: Ladder, suite: str) -> Callable[[str], str]:
    def told(name: str) -> str:
        record = ladder.records.get(name)
        if record is None:
            return NONE
        if suite != "total":
            means = (_mean(one) for one in record.score.suites if one.suite == suite)
            return number(next(means, None), 2)
        shown = number(record.score.total, 2)
        return shown if record.score.graded or shown == NONE else f"({shown})"

    return told


def _mean(score: SuiteScore) -> float | None:
    return score.score if score.complete else None


def _predicted_of(ladder: Ladder, cases: Sequence[str]) -> Callable[[str], str]:
    def told(name: str) -> str:
        return number(mean_or_none([ladder.predicted_score(name, case) for case in cases]), 2)

    return told


def _case_score(ladder: Ladder, version: str, case: str) -> str:
    predicted = ladder.predicted_score(version, case)
    result = ladder.result(version, case)
    return number(predicted if predicted is not None else result.score if result else None, 2)
