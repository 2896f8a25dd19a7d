"""The block of the ladder's page about verdicts, and how what is wrong fails."""

from __future__ import annotations

from collections.abc import Iterator

from judge.record import Record
from judge.verdict import Verdict
from scripts.cells import NONE, cell, yes
from scripts.ladder.material import Material
from scripts.ladder.records import Ladder
from scripts.ladder.versions import FULL_SUITES, VERSIONS, Fate, Version, surprise
from scripts.markdown import NOT_MEASURED, table


def verdicts(material: Material) -> Iterator[str]:
    """Of every version how many cases passed, and whether that is what its docstring says."""
    if not material.ladders:
        yield NOT_MEASURED
        return
    columns = [(ladder, suite) for ladder in material.ladders for suite in _suites(ladder)]
    titles = [f"{suite}, {ladder.title}" for ladder, suite in columns]
    rows = []
    surprises = []
    for version in VERSIONS.values():
        records = [
            (one, one.records[version.name])
            for one in material.ladders
            if version.name in one.records
        ]
        cells = [_passed(ladder.records.get(version.name), suite) for ladder, suite in columns]
        found = [
            (ladder, problem)
            for ladder, record in records
            if (problem := surprise(version, record))
        ]
        surprises += [
            f"- {version.name}, {ladder.title}: {cell(problem)}" for ladder, problem in found
        ]
        word = yes(not found if records else None)
        rows.append([version.name, *cells, str(version.fate), word])
    yield from table(["version", *titles, "its docstring says", "so it is"], rows, left=(0, -2, -1))
    failed = [line for version in VERSIONS.values() for line in _how_it_fails(version, material)]
    if failed:
        yield from ("", "How the wrong ones fail, the first case that did:", "", *failed)
    if surprises:
        yield from ("", "Not as the docstring says:", "", *surprises)


def _how_it_fails(version: Version, material: Material) -> list[str]:
    """The first failure of a version that is meant to fail, as one line; none where it has none."""
    if version.fate is Fate.RIGHT:
        return []
    found = [
        f"- {version.name}, {ladder.title}: {cell(told)}"
        for ladder in material.ladders
        if version.name in ladder.records and (told := _first_failure(ladder.records[version.name]))
    ]
    return found[:1]


def _suites(ladder: Ladder) -> list[str]:
    found = {result.suite for record in ladder.records.values() for result in record.results}
    known = [suite for suite in FULL_SUITES if suite in found]
    return known + sorted(found - set(known))


def _passed(record: Record | None, suite: str) -> str:
    results = [result for result in record.results if result.suite == suite] if record else []
    if not results:
        return NONE
    return f"{sum(result.verdict is Verdict.PASS for result in results)} of {len(results)}"


def _first_failure(record: Record) -> str:
    for result in record.results:
        if result.verdict is not Verdict.PASS:
            return f"{result.case.name}: {result.verdict}: {result.detail}"
    return ""
