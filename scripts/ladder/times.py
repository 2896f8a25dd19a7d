"""The blocks of the ladder's page about times: tables, pictures and orders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from judge.record import CaseResult
from judge.verdict import Verdict
from scripts.cells import NOISY, NONE, number, quotient
from scripts.ladder.material import Material
from scripts.ladder.pictures import (
    draw_dropped,
    draw_long_cases,
    draw_public,
    draw_speed_up,
    speed_ups,
)
from scripts.ladder.records import Ladder
from scripts.ladder.report import TIE, Report, reversals
from scripts.ladder.versions import FIRST, REFERENCE, SUBMITTED, VERSIONS, dropped
from scripts.markdown import NOT_MEASURED, picture, table
from scripts.names import PUBLIC_NAMES

_CHAMPION = "champion"


def times(material: Material) -> Iterator[str]:
    """All versions by all public cases, a table a budget."""
    if not material.ladders:
        yield NOT_MEASURED
    for ladder in material.ladders:
        yield from (f"### {ladder.title}", "")
        rows = [
            [name, *(_time_cell(ladder.result(name, case)) for case in material.cases)]
            for name in ladder.records
        ]
        yield from table(["version", *material.cases], rows)
        yield ""


def _time_cell(result: CaseResult | None) -> str:
    if result is None:
        return NONE
    if result.verdict is not Verdict.PASS or result.timing is None:
        return str(result.verdict)
    mark = NOISY if result.noisy else ""
    return f"{mark}{result.timing.median_ms:.3f} ({100 * result.timing.spread:.0f} %)"


def speed_up(material: Material) -> Iterator[str]:
    """The heat maps, on one scale."""
    every = [
        ratio
        for ladder in material.ladders
        for version in ladder.records
        for ratio in speed_ups(ladder, version, material.cases)
    ]
    drawn = False
    for ladder in material.ladders:
        stem = material.pictures / f"ladder-speed-up-{ladder.sms}"
        span = (min(every, default=1.0) * 0.98, max(every, default=1.0) * 1.02)
        if draw_speed_up(ladder, material.cases, span, stem):
            yield from picture(stem, material.page, f"Speed-up over v01 by version, {ladder.title}")
            drawn = True
        else:
            yield from (f"{ladder.title}: needs {FIRST} and one version more.", "")
    if not drawn:
        yield NOT_MEASURED


def long_cases(material: Material) -> Iterator[str]:
    """The four long cases by version, and the report's figures beside ours."""
    stem = material.pictures / "ladder-long-cases"
    if draw_long_cases(material.ladders, material.report, stem):
        yield from picture(stem, material.page, "Median of the four long cases by version")
    else:
        yield from (f"{NOT_MEASURED} The report's figures:", "")
    report, ladders = material.report, material.ladders
    predicting = [ladder for ladder in ladders if ladder.predicts]
    titles = [f"the report, {report.sms} SMs"]
    titles += [f"here, {ladder.title}" for ladder in ladders]
    titles += [f"predicted for the slice from {ladder.title}" for ladder in predicting]
    titles += ["predicted / report" for _ in predicting]
    rows = []
    for version, medians in report.medians_ms.items():
        for case in (case for case in material.cases if case in medians):
            cells = [f"{medians[case]:.3f}"]
            cells += [number(ladder.median(version, case), 3) for ladder in ladders]
            guesses = [ladder.predicted(version, case) for ladder in predicting]
            cells += [number(guess, 3) for guess in guesses]
            cells += [quotient(guess, medians[case]) for guess in guesses]
            rows.append([version, case, *cells])
    yield from table(["version", "case", *titles], rows, left=(0, 1))


def experiments(material: Material) -> Iterator[str]:
    """The experiments relative to v07, beside what the report says of them."""
    stem = material.pictures / "ladder-experiments"
    if draw_dropped(material.ladders, material.report, stem):
        yield from picture(stem, material.page, "Experiments relative to v07")
    else:
        yield from (f"{NOT_MEASURED} What the report says:", "")
    report = material.report
    cases = ("long_low_gva", "wide_gva_state")
    titles = [
        f"{case}, {title}"
        for case in cases
        for title in ("report", *(one.title for one in material.ladders))
    ]
    rows = []
    for version in dropped():
        cells = []
        for case in cases:
            stated = report.relative(version.name, REFERENCE, case)
            cells.append(" / ".join(f"{ratio:.2f}" for ratio in stated) or NONE)
            cells += [_relative_cell(ladder, version.name, case) for ladder in material.ladders]
        rows.append([version.name, *cells, report.without_figures.get(version.name, "")])
    yield from table(["median / v07's", *titles, "the report's words"], rows, left=(0, -1))


def _relative_cell(ladder: Ladder, version: str, case: str) -> str:
    result = ladder.result(version, case)
    if result is not None and result.verdict is not Verdict.PASS:
        return str(result.verdict)
    return number(ladder.ratio(version, REFERENCE, case), 2)


def order(material: Material) -> Iterator[str]:
    """Where two versions stand in another order than in the report."""
    if not material.ladders:
        yield NOT_MEASURED
        return
    for ladder in material.ladders:
        yield from (f"### {ladder.title}", "")
        lines = list(order_lines(material.report, ladder))
        yield from lines or [
            f"Wherever both were measured the order is the report's (±{100 * TIE:.0f} %)."
        ]
        yield ""


def order_lines(report: Report, ladder: Ladder) -> Iterator[str]:
    """A line for each pair that the report orders and this ladder does not order so."""
    for one in reversals(report, ladder.medians()):
        how = "equal" if one.tied else "behind it"
        (best, other), (first, second) = one.theirs, one.ours
        yield (
            f"- {one.case}: {one.ahead} is ahead of {one.behind} in the report ({best:.3f} and "
            f"{other:.3f} ms) and {how} here ({first:.3f} and {second:.3f} ms)."
        )


def public(material: Material) -> Iterator[str]:
    """v14 and the champion beside the public implementations, a table and a picture a budget."""
    own = (SUBMITTED, _CHAMPION)
    for ladder in material.ladders:
        implementations = material.public.get(ladder.sms, {})
        if not implementations:
            continue
        medians = ladder.medians()
        shown = {VERSIONS[name].short: medians[name] for name in own if medians.get(name)}
        shown |= {PUBLIC_NAMES.get(name, name): by for name, by in implementations.items()}
        title = f"Submissions and, whole, public implementations, {ladder.title}"
        stem = material.pictures / f"ladder-public-{ladder.sms}"
        yield from (f"### {ladder.title}", "")
        if draw_public(title, shown, material.cases, stem):
            yield from picture(stem, material.page, title)
        yield from _public_table(shown, material.cases)
        yield ""
    if not any(material.public.values()):
        yield from ("Not measured here yet: no record has times of public implementations.", "")
    report = material.report
    theirs = {"v14": report.medians_ms[SUBMITTED]}
    theirs |= {PUBLIC_NAMES[name]: by for name, by in report.public_ms.items()}
    yield from (f"### The report, {report.sms} SMs", "")
    yield from _public_table(theirs, material.cases)


def _public_table(times: Mapping[str, Mapping[str, float]], cases: Sequence[str]) -> Iterator[str]:
    first = next(iter(times))
    others = [name for name in times if name != first]
    rows = []
    for case in cases:
        own = times[first].get(case)
        cells = [number(times[name].get(case), 3) for name in times]
        ratios = [quotient(times[name].get(case), own) for name in others]
        rows.append([case, *cells, *ratios])
    yield from table(["case", *times, *(f"{name} / {first}" for name in others)], rows)
