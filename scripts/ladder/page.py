"""The generated parts of docs/ladder.md, each as lines of Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from judge.check_report import CheckReport
from judge.profiling.stalls import label
from judge.record import CaseResult, Record, SuiteScore
from judge.text import plain
from judge.verdict import Verdict
from scripts.cells import NOISY, NONE, cell, number, percent, quotient
from scripts.conditions import days, machine_and_protocol
from scripts.goal import goal_table
from scripts.ladder.goals import goals
from scripts.ladder.memory import (
    HAND_OVER,
    INPUTS,
    KB,
    Buffer,
    buffers,
    compiled,
    dynamic_bytes,
    group_bytes,
    static_bytes,
)
from scripts.ladder.pictures import (
    draw_dropped,
    draw_long_cases,
    draw_public,
    draw_speed_up,
    draw_stalls,
    speed_ups,
)
from scripts.ladder.records import Ladder, Profile, mean_or_none
from scripts.ladder.report import TIE, Report, reversals
from scripts.ladder.versions import (
    FIRST,
    FULL_SUITES,
    REFERENCE,
    SUBMITTED,
    VERSIONS,
    Fate,
    Version,
    dropped,
    surprise,
)
from scripts.markdown import NOT_MEASURED, link, picture, table
from scripts.names import PUBLIC_NAMES

_CHAMPION = "champion"
_SHOWN_STALLS = ("long_scoreboard", "short_scoreboard", "barrier", "wait", "branch_resolving")


@dataclass(frozen=True)
class Material:
    """All that the page is made of.

    public: of each ladder by its SMs, medians in ms by public implementation and case. check: None
    where v14 was not compiled. check_file: where it is from. page: the document, which links are
    relative to. pictures: the folder that they go to.
    """

    ladders: Sequence[Ladder]
    report: Report
    public: Mapping[int, Mapping[str, Mapping[str, float]]]
    profiles: Sequence[Profile]
    check: CheckReport | None
    check_file: Path
    folder: Path
    page: Path
    pictures: Path

    @property
    def cases(self) -> list[str]:
        """The public cases, in the lab's order."""
        return list(self.report.medians_ms[FIRST])


def conditions(material: Material) -> Iterator[str]:
    """On what, with what and when each budget was measured, and what is missing."""
    if not material.ladders:
        yield f"{NOT_MEASURED} Until then the tables hold the report's figures."
        return
    for ladder in material.ladders:
        told = dict.fromkeys(
            machine_and_protocol(record, part=True) for record in ladder.records.values()
        )
        yield f"- {ladder.title}, {days(ladder.records.values())}: {'; '.join(told)}."
        if len(told) > 1:
            yield "  These records are not of one kind: differences between them mean little."
        if missing := [name for name in VERSIONS if name not in ladder.records]:
            yield f"  Not measured yet: {', '.join(missing)}."
    noisy = [
        f"{name} on {result.case.name} ({ladder.title})"
        for ladder in material.ladders
        for name, record in ladder.records.items()
        for result in record.results
        if result.noisy
    ]
    if noisy:
        yield f"- Noisy although timed twice, marked {NOISY} below: {', '.join(noisy)}."
    yield ""
    folder = link(material.folder, material.page)
    yield f"Raw records: [{folder}]({folder})."


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
        word = "no" if found else "yes" if records else NONE
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
    predicting = [ladder for ladder in ladders if _predicts(ladder)]
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


def _predicts(ladder: Ladder) -> bool:
    return any(record.prediction is not None for record in ladder.records.values())


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


def scores(material: Material) -> Iterator[str]:
    """Scores by version: judged here, and predicted for the lab's slice."""
    columns: list[tuple[str, Callable[[str], str]]] = []
    for ladder in material.ladders:
        if any(record.baseline.source != "none" for record in ladder.records.values()):
            for suite in (*FULL_SUITES[:2], "total"):
                columns.append((f"{suite}, {ladder.title}", _score_of(ladder, suite)))
        if _predicts(ladder):
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


def memory(material: Material) -> Iterator[str]:
    """v14's shared memory, buffer by buffer, beside what the compiler says."""
    wide, narrow = buffers(128), buffers(64)
    rows = [
        [
            buffer.group,
            f"`{buffer.name}`",
            _sizes(buffer, other),
            f"{buffer.size:,}",
            f"{other.size:,}",
        ]
        for buffer, other in zip(wide, narrow, strict=True)
    ]
    titles = ["", "buffer", "sizes × bytes", "dv slice 128", "dv slice 64"]
    yield from table(titles, rows, left=(0, 1, 2))
    yield ""
    reported = material.report.shared_memory_kb
    rows = [
        [
            group,
            _kb(group_bytes(wide, group)),
            _kb(group_bytes(narrow, group)),
            f"{reported[key]:g}",
        ]
        for group, key in ((INPUTS, "inputs"), (HAND_OVER, "hand_over"))
    ]
    rows.append(
        [
            "a block, with the static part rounded up",
            *(_kb(dynamic_bytes(listed) + static_bytes(listed)) for listed in (wide, narrow)),
            f"{reported['total']:g}",
        ]
    )
    yield from table(["KB", "dv slice 128", "dv slice 64", "the report"], rows)
    yield ""
    if material.check is None:
        yield "Not compiled here yet: see scripts/measure_shared_memory.py."
        return
    yield from _compiled(material, wide, narrow)


def _sizes(buffer: Buffer, other: Buffer) -> str:
    """2 × 64 × 128 × 2; what follows the dv slice is told as both."""
    pairs = zip(buffer.sizes, other.sizes, strict=True)
    return " × ".join([*(str(a) if a == b else "dv" for a, b in pairs), str(buffer.item)])


def _compiled(material: Material, wide: list[Buffer], narrow: list[Buffer]) -> Iterator[str]:
    check = material.check
    assert check is not None
    told = []
    for name, listed in (("128", wide), ("64", narrow)):
        kernels = compiled(check, listed)
        if not kernels:
            told.append(f"no kernel with the sum of dv slice {name}")
            continue
        first = kernels[0]
        ctas = first.occupancy.ctas if first.occupancy else NONE
        told.append(
            f"dv slice {name}: {first.dynamic_shared:,} + {first.static_shared:,} B, "
            f"{first.registers} registers a thread, {ctas} block an SM"
        )
    profile = check.profile
    limit = profile.shared_per_block
    half = profile.shared_per_sm // 2 - profile.shared_reserved
    yield (
        f"The compiler says ([check]({link(material.check_file, material.page)}), TileLang "
        f"{check.tilelang}): {'; '.join(told)}. A block may have {limit:,} B ({limit / KB:g} KB); "
        f"for two on an SM each may have {_kb(half)} KB."
    )


def stalls(material: Material) -> Iterator[str]:
    """Where the warps' cycles go, and how busy the tensor cores are."""
    stem = material.pictures / "ladder-stalls"
    if draw_stalls(material.profiles, stem):
        yield from picture(stem, material.page, "Stall breakdown by version and case")
    else:
        yield from (f"{NOT_MEASURED} The report's figures:", "")
    titles = ["version", "case", "tensor cores active", "issue slots busy", "SMs busy"]
    titles += [label(reason) for reason in _SHOWN_STALLS]
    rows = [
        [
            f"[{profile.version}]({link(profile.file, material.page)})",
            profile.case,
            percent(profile.tensor_active_pct),
            percent(profile.issue_active_pct),
            percent(profile.sms_busy_pct),
            *(percent(100 * profile.stall(reason)) for reason in _SHOWN_STALLS),
        ]
        for profile in material.profiles
    ]
    active = material.report.tensor_active_pct
    low, high = active[SUBMITTED]
    for case, told in material.report.stalls_pct[SUBMITTED].items():
        shares = [percent(told.get(reason)) for reason in _SHOWN_STALLS]
        name = f"the report's v14, {material.report.sms} SMs"
        rows.append([name, case, f"{low:g} to {high:g} %", NONE, NONE, *shares])
    yield from table(titles, rows, left=(0, 1))
    known = {(profile.version, profile.case) for profile in material.profiles}
    wanted = (FIRST, "v06_warp_specialized", REFERENCE, SUBMITTED)
    missing = [
        f"{version} on {case}"
        for case in material.report.stalls_pct[SUBMITTED]
        for version in wanted
        if (version, case) not in known
    ]
    if missing:
        yield from ("", f"Not profiled yet: {', '.join(missing)}.")


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


def held(material: Material) -> Iterator[str]:
    """What the ladder is held to, and whether it holds."""
    yield from goal_table(goals(material.ladders))


BLOCKS: Mapping[str, Callable[[Material], Iterator[str]]] = {
    "conditions": conditions,
    "verdicts": verdicts,
    "times": times,
    "speed-up": speed_up,
    "long-cases": long_cases,
    "order": order,
    "experiments": experiments,
    "scores": scores,
    "public": public,
    "memory": memory,
    "stalls": stalls,
    "held": held,
}
"""By the name in the page's markers."""


def _kb(size: int) -> str:
    return f"{size / KB:.1f}"
