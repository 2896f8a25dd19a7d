"""What each page of the site shows, as plain data in no language, with hidden cases as h1, h2, …"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.brief import AnyRecord
from judge.case import HIDDEN_SUITE, Case
from judge.check_report import CheckReport, KernelReport
from judge.leaderboard import Board, Cell, Row, case_names
from judge.record import CaseResult, Record, Timing
from judge.scoring import speed_up
from judge.site.charts import place_chart, samples_chart
from judge.site.log_excerpt import Section, log_excerpt
from judge.site.names import file_name
from judge.verdict import Verdict
from judge.views.participant import participant_view

Mark = tuple[str, float]
"""A time to compare with, in ms: t100, t60 or floor."""


@dataclass(frozen=True)
class CaseLine:
    """One case of a submission; times in ms, None where there is none or nobody may see it.

    drawn, placed: the insides of the charts of its samples and of its median's place, empty where
    there are none.
    """

    name: str
    suite: str
    verdict: Verdict
    score: float | None
    timing: Timing | None
    gpu_ms: float | None
    speed_up: float | None
    detail: str
    noisy: str
    marks: Sequence[Mark]
    drawn: str
    placed: str


@dataclass(frozen=True)
class UntimedSuite:
    """The untimed cases of a suite: how many passed, and a line of each that did not."""

    suite: str
    passed: int
    lines: Sequence[CaseLine]

    @property
    def failures(self) -> list[CaseLine]:
        """Those that did not pass."""
        return [line for line in self.lines if line.verdict is not Verdict.PASS]


@dataclass(frozen=True)
class Kernels:
    """What `check` found: kernels that a case launches which is not hidden."""

    profile: str
    created: str
    kernels: Sequence[KernelReport]


@dataclass(frozen=True)
class SubmissionPage:
    """One row of a board in full.

    ranked: how many have a rank. history: every attempt, in order; one that counts has the row's
    result and attempt.
    """

    row: Row
    ranked: int
    lines: Sequence[CaseLine] = ()
    untimed: Sequence[UntimedSuite] = ()
    history: Sequence[Row] = ()
    kernels: Kernels | None = None
    log: Sequence[Section] = ()
    notes: Sequence[str] = ()

    @property
    def floored(self) -> bool:
        """Whether the floor of some case is known."""
        return any(name == "floor" for line in self.lines for name, _ in line.marks)


@dataclass(frozen=True)
class Standing:
    """One participant at a case. place: 1 for the best score; None where it earned none."""

    row: Row
    place: int | None
    cell: Cell


@dataclass(frozen=True)
class CasePage:
    """A case and how everybody stands there; an untimed one lists those who did not pass.

    case: None where it is hidden. passed, ran: participants.
    """

    name: str
    suite: str
    case: Case | None
    timed: bool
    passed: int
    ran: int
    marks: Sequence[Mark]
    standings: Sequence[Standing]


@dataclass(frozen=True)
class BoardSite:
    """A board and the files that its pages go to, relative to its language's folder.

    people: file by participant's id. cases, untimed: by case, of timed ones and the others.
    number: from 1, the newest board's. ranked: how many participants have a rank.
    """

    number: int
    board: Board
    page: str
    people: Mapping[str, str]
    cases: Mapping[str, str]
    untimed: Mapping[str, str]
    ranked: int


def board_site(board: Board, number: int, sample: AnyRecord) -> BoardSite:
    """Where a board's pages go. sample: the record of one of its results that has every case."""
    names = zip(case_names(sample), sample.results, strict=True)
    files = {name: (f"{number}/case-{file_name(name)}.html", r.case.timed) for name, r in names}
    return BoardSite(
        number=number,
        board=board,
        page="index.html" if number == 1 else f"board-{number}.html",
        people={
            row.participant.id: f"{number}/{file_name(row.participant.id)}.html"
            for row in board.rows
        },
        cases={name: file for name, (file, timed) in files.items() if timed},
        untimed={name: file for name, (file, timed) in files.items() if not timed},
        ranked=sum(row.rank is not None for row in board.rows),
    )


def submission_page(
    row: Row,
    ranked: int,
    history: Sequence[Row],
    record: Record | None,
    check: CheckReport | None,
) -> SubmissionPage:
    """A row's page. record: the whole one that the row shows, None where it was refused."""
    if record is None:
        return SubmissionPage(row, ranked, history=history)
    shown = participant_view(record)
    lines = [_line(result, shown) for result in shown.results]
    timed = {result.case.name: result.case.timed for result in shown.results}
    suites = dict.fromkeys(line.suite for line in lines if not timed[line.name])
    groups = [
        [line for line in lines if line.suite == suite and not timed[line.name]] for suite in suites
    ]
    return SubmissionPage(
        row=row,
        ranked=ranked,
        lines=[line for line in lines if timed[line.name]],
        untimed=[
            UntimedSuite(group[0].suite, sum(x.verdict is Verdict.PASS for x in group), group)
            for group in groups
        ],
        history=history,
        kernels=_kernels(check),
        log=log_excerpt(record),
        notes=shown.notes,
    )


def case_pages(site: BoardSite, sample: Record, records: Mapping[int, AnyRecord]) -> list[CasePage]:
    """A page of each case of a board. records: by number, at least those of the board's rows."""
    shown = participant_view(sample)
    verdicts: dict[str, list[tuple[Row, Verdict]]] = {}
    for row in site.board.rows:
        if row.result is not None:
            record = records[row.result]
            for name, result in zip(case_names(record), record.results, strict=True):
                verdicts.setdefault(name, []).append((row, result.verdict))
    pages = []
    for result in shown.results:
        name = result.case.name
        hidden = result.suite == HIDDEN_SUITE
        there = verdicts.get(name, [])
        if result.case.timed:
            standings = _standings(name, site.board.rows, hidden)
        else:
            standings = [
                Standing(row, None, Cell(verdict, None, None))
                for row, verdict in there
                if verdict is not Verdict.PASS
            ]
        pages.append(
            CasePage(
                name=name,
                suite=result.suite,
                case=None if hidden else result.case,
                timed=result.case.timed,
                passed=sum(verdict is Verdict.PASS for _, verdict in there),
                ran=len(there),
                marks=_marks(result, shown),
                standings=standings,
            )
        )
    return pages


def _standings(name: str, rows: Sequence[Row], hidden: bool) -> list[Standing]:
    """By score, then by verdict: without times where the case is hidden."""
    there = [(row, row.cells[name]) for row in rows if name in row.cells]
    if hidden:
        there = [(row, Cell(cell.verdict, cell.score, None)) for row, cell in there]
    there.sort(
        key=lambda one: (
            one[1].verdict is not Verdict.PASS,
            one[1].score is None,
            -(one[1].score or 0.0),
            one[1].median_ms or 0.0,
            one[0].participant.id,
        )
    )
    places: list[Standing] = []
    for number, (row, cell) in enumerate(there, start=1):
        earned = cell.verdict is Verdict.PASS and cell.score is not None
        same = places and earned and places[-1].cell.score == cell.score
        place = places[-1].place if same else number if earned else None
        places.append(Standing(row, place, cell))
    return places


def _line(result: CaseResult, record: Record) -> CaseLine:
    marks = _marks(result, record)
    return CaseLine(
        name=result.case.name,
        suite=result.suite,
        verdict=result.verdict,
        score=result.score,
        timing=result.timing,
        gpu_ms=result.gpu_ms,
        speed_up=speed_up(result, record.baseline),
        detail=result.detail,
        noisy=result.noisy,
        marks=marks,
        drawn=samples_chart(result.timing) if result.timing is not None else "",
        placed=_placed(result.timing, marks) if result.timing is not None else "",
    )


def _placed(timing: Timing, marks: Sequence[Mark]) -> str:
    times = [timing.median_ms, *(ms for _, ms in marks)]
    return place_chart(timing.median_ms, marks, 0.85 * min(times), 1.15 * max(times))


def _marks(result: CaseResult, record: Record) -> list[Mark]:
    """Baselines and floor of a case, where they are known. record: a participant's view."""
    name, baseline = result.case.name, record.baseline
    marks = [
        (kind, times[name])
        for kind, times in (("t100", baseline.t100_ms), ("t60", baseline.t60_ms))
        if name in times and result.case.timed
    ]
    floor = result.witness.floor_ms if result.witness is not None else None
    return marks + ([("floor", floor)] if floor else [])


def _kernels(check: CheckReport | None) -> Kernels | None:
    """A kernel that hidden cases alone launch could tell what they are, by its very name."""
    if check is None:
        return None
    shown = {case.case.name for case in check.cases if case.suite != HIDDEN_SUITE}
    kernels = [kernel for kernel in check.kernels if shown & set(kernel.cases)]
    return Kernels(check.profile.name, check.created, kernels) if kernels else None
