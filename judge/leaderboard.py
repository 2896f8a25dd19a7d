"""From a store to boards: one for each set of conditions, ranked by what is asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from msgspec import Struct

from judge.brief import AnyRecord
from judge.case import HIDDEN_SUITE
from judge.roster import Participant
from judge.store.decisions import Decision, Kind, Standing, about, standing
from judge.store.store import Attempt, Graded, Store
from judge.verdict import Rules, Verdict
from judge.worth import TOTAL, margin_of, practice_of, value_of


class Cell(Struct, frozen=True):
    """What a board shows of one timed case; score and median in ms are None where there is none.

    hidden: whether the case is of the hidden suite, so that its time is for assistants alone.
    """

    verdict: Verdict
    score: float | None
    median_ms: float | None
    hidden: bool = False


class Untimed(Struct, frozen=True):
    """The untimed cases of a suite: how many passed of how many, and the first verdict that did not
    pass, None where all did."""

    passed: int
    ran: int
    failure: Verdict | None


@dataclass(frozen=True)
class Row:
    """One participant on a board.

    rank: None where the result has no value to rank by; why then says why in one line.
    value, margin: what is ranked, and how far the measured spread lets it vary; scores.
    scores: suite means by suite. cells: by case as the board names it. untimed: by suite.
    tries: attempts of this participant, refused ones included. created, submitted: when graded,
    when uploaded, ISO 8601 UTC. void: whether an assistant took its value. remark: what else one
    decided about it, and why. practice: why a value that is ranked does not count, empty where it
    does. result: its number in the store, None where it was refused.
    """

    participant: Participant
    name: str
    rank: int | None = None
    value: float | None = None
    margin: float = 0.0
    total: float | None = None
    scores: dict[str, float | None] = field(default_factory=dict)
    cells: dict[str, Cell] = field(default_factory=dict)
    untimed: dict[str, Untimed] = field(default_factory=dict)
    rules: Rules | None = None
    attempt: str = ""
    tries: int = 0
    created: str = ""
    submitted: str = ""
    device_name: str = ""
    why: str = ""
    void: bool = False
    remark: str = ""
    practice: str = ""
    result: int | None = None


@dataclass(frozen=True)
class Board:
    """Results under one set of conditions, the only ones that can be ranked together.

    number: its place among all `of` boards of the store, the newest one's 1. settings: the key of
    all that its results were graded under. conditions: names and values that every row shares. by:
    what the rows are ranked by.
    """

    number: int
    of: int
    settings: str
    conditions: dict[str, str]
    official: bool
    by: str
    suites: list[str]
    cases: list[str]
    untimed: list[str]
    rows: list[Row]

    @property
    def names(self) -> list[str]:
        """Everything that its rows can be ranked by."""
        return [TOTAL, *self.suites, *self.cases]


def make_boards(
    participants: Mapping[str, Participant],
    attempts: Sequence[Attempt],
    results: Iterable[Graded],
    by: str | None,
    latest: bool,
    decisions: Standing | None = None,
    deadline: datetime | None = None,
) -> list[Board]:
    """The boards of a store, that of the newest result first.

    attempts: in the order in which they were seen. results: oldest first. by: total, a suite, or a
    case as boards name it; None for the total, or the first scored suite where no result has one.
    latest: whether a participant's last attempt counts, else the best. deadline: later attempts
    count only for who has nothing to rank in time; None where all count alike. Whose last attempt
    was refused stands on every board.
    """
    groups: dict[str, list[Graded]] = defaultdict(list)
    for graded in results:
        groups[graded.settings].append(graded)
    newest = sorted(groups.values(), key=lambda group: group[-1].id, reverse=True)
    last = {attempt.participant: attempt for attempt in attempts}
    refused = {who for who, attempt in last.items() if attempt.problem}
    boards = []
    for number, group in enumerate(newest, start=1):
        here = refused | {graded.participant for graded in group}
        some = [attempt for attempt in attempts if attempt.participant in here]
        place = (number, len(newest))
        boards.append(
            _board(place, participants, some, group, by, latest, decisions or {}, deadline)
        )
    return boards


def store_boards(
    store: Store, by: str | None, latest: bool, deadline: datetime | None = None
) -> list[Board]:
    """The boards of a store, under the decisions that stand. Raises StoreError."""
    everything = (store.participants(), store.attempts(), store.briefs())
    return make_boards(*everything, by, latest, standing(store.decisions()), deadline)


def histories(
    board: Board,
    participants: Mapping[str, Participant],
    attempts: Iterable[Attempt],
    results: Iterable[Graded],
    decisions: Standing,
) -> dict[str, list[Row]]:
    """Every attempt that a board chose from, unranked, by participant and in the attempts' order.

    attempts, results: of the whole store, as for `make_boards`.
    """
    group = [graded for graded in results if graded.settings == board.settings]
    tries = _tries(participants, attempts, group, board.by, decisions)
    return {who: rows for who, (_, rows) in tries.items() if rows}


def names_of(boards: Sequence[Board]) -> list[str]:
    """Everything that some board can be ranked by."""
    return list(dict.fromkeys(name for board in boards for name in board.names))


def case_names(record: AnyRecord) -> list[str]:
    """The record's cases as participants know them: those of the hidden suite are h1, h2, …"""
    names = []
    hidden = 0
    for result in record.results:
        hidden += result.suite == HIDDEN_SUITE
        names.append(f"h{hidden}" if result.suite == HIDDEN_SUITE else result.case.name)
    return names


def is_late(row: Row, deadline: datetime) -> bool:
    """Whether an attempt was changed after the deadline; not where no time of it is known."""
    return bool(row.submitted) and datetime.fromisoformat(row.submitted) > deadline


def _board(
    place: tuple[int, int],
    participants: Mapping[str, Participant],
    attempts: Sequence[Attempt],
    group: Sequence[Graded],
    by: str | None,
    latest: bool,
    decisions: Standing,
    deadline: datetime | None,
) -> Board:
    longest = max((graded.record for graded in group), key=lambda record: len(record.results))
    named = list(zip(case_names(longest), longest.results, strict=True))
    suites = [suite.suite for suite in longest.score.suites]
    timed = {result.suite for _, result in named if result.case.timed}
    if by is None:
        here = {attempt.participant for attempt in attempts}
        overridden = any(
            d.kind is Kind.OVERRIDE and d.participant in here for d in decisions.values()
        )
        totals = overridden or any(g.record.score.total is not None for g in group)
        by = TOTAL if totals or not timed else next(suite for suite in suites if suite in timed)
    rows = [
        replace(_chosen(candidates, latest, deadline), tries=len(theirs))
        for theirs, candidates in _tries(participants, attempts, group, by, decisions).values()
        if candidates
    ]
    return Board(
        *place,
        settings=group[-1].settings,
        conditions=_conditions(group[-1].record),
        official=longest.protocol.official,
        by=by,
        suites=[suite for suite in suites if suite in timed],
        cases=[name for name, result in named if result.case.timed],
        untimed=[s for s in suites if any(r.suite == s and not r.case.timed for _, r in named)],
        rows=_ranked(rows),
    )


def _tries(
    participants: Mapping[str, Participant],
    attempts: Iterable[Attempt],
    group: Iterable[Graded],
    by: str,
    decisions: Standing,
) -> dict[str, tuple[list[Attempt], list[Row]]]:
    """By participant: all attempts, and a row of each that was refused or has a result here."""
    found = {(graded.participant, graded.content): graded for graded in group}
    tries: dict[str, tuple[list[Attempt], list[Row]]] = {}
    for attempt in attempts:
        theirs, rows = tries.setdefault(attempt.participant, ([], []))
        theirs.append(attempt)
        graded = found.get((attempt.participant, attempt.content))
        if attempt.problem or graded is not None:
            who = participants.get(attempt.participant, Participant(attempt.participant))
            decision = about(decisions, attempt.participant, attempt.label)
            rows.append(_decided(_row(who, attempt, graded, by), decision, by))
    return tries


def _chosen(candidates: Sequence[Row], latest: bool, deadline: datetime | None) -> Row:
    if deadline is not None:
        in_time = [row for row in candidates if not is_late(row, deadline)]
        if any(row.value is not None for row in in_time):
            candidates = in_time
    ranked = [] if latest else [row for row in candidates if row.value is not None]
    if ranked:
        return max(ranked, key=lambda row: row.value or 0.0)
    valid = [] if latest else [row for row in candidates if not row.void]
    return (valid or candidates)[-1]


def _row(who: Participant, attempt: Attempt, graded: Graded | None, by: str) -> Row:
    name = attempt.display_name or who.name or who.id
    seen = {"attempt": attempt.label, "submitted": attempt.submitted}
    if graded is None:
        return Row(who, name, **seen, why=f"refused: {attempt.problem}")
    record = graded.record
    named = list(zip(case_names(record), record.results, strict=True))
    value, why = value_of(record, named, by)
    return Row(
        who,
        name,
        **seen,
        value=value,
        margin=margin_of(record, named, by),
        total=record.score.total,
        scores={s.suite: s.score for s in record.score.suites},
        cells={
            name: Cell(
                verdict=r.verdict,
                score=r.score,
                median_ms=r.timing.median_ms if r.timing else None,
                hidden=r.suite == HIDDEN_SUITE,
            )
            for name, r in named
            if r.case.timed
        },
        untimed={s.suite: _untimed(record, s.suite) for s in record.score.suites},
        rules=record.submission.rules,
        created=record.created,
        device_name=record.environment.device_name,
        why=why,
        practice=practice_of(record, by) if value is not None else "",
        result=graded.id,
    )


def _decided(row: Row, decision: Decision | None, by: str) -> Row:
    """The row after an assistant's decision, which it shows."""
    if decision is None:
        return row
    if decision.kind is Kind.VOID:
        void = f"void: {decision.reason}"
        return replace(row, value=None, why=void, void=True, practice="")
    remark = f"override: {decision.reason}"
    if by != TOTAL:
        return replace(row, total=decision.score, remark=remark)
    score = decision.score
    ranked = replace(row, total=score, value=score, margin=0.0, why="", practice="")
    return replace(ranked, remark=remark)


def _untimed(record: AnyRecord, suite: str) -> Untimed:
    ran = [r for r in record.results if r.suite == suite and not r.case.timed]
    failures = [r.verdict for r in ran if r.verdict is not Verdict.PASS]
    return Untimed(len(ran) - len(failures), len(ran), failures[0] if failures else None)


def _ranked(rows: Sequence[Row]) -> list[Row]:
    """Rows in their order. Who is within the larger margin of the first of a rank shares it."""
    ordered = sorted(
        rows,
        key=lambda r: (r.value is None, -(r.value or 0.0), r.participant.id),
    )
    ranked: list[Row] = []
    first = Row(Participant(""), "")
    for place, row in enumerate(ordered, start=1):
        if row.value is None:
            ranked.append(row)
            continue
        shares = first.value is not None and first.value - row.value <= max(
            first.margin, row.margin
        )
        ranked.append(replace(row, rank=first.rank if shares else place))
        if not shares:
            first = ranked[-1]
    return ranked


def _conditions(record: AnyRecord) -> dict[str, str]:
    environment, protocol = record.environment, record.protocol
    whole = f" of {environment.sms_of}" if environment.sms_of is not None else ""
    sms = f", {environment.sms}{whole} SMs" if environment.sms is not None else ""
    calls = f"{protocol.repetitions} after {protocol.warmup}"
    return {
        "device": environment.device_name + sms,
        "protocol": f"{protocol.name}, {protocol.clock}, {calls}, seed {protocol.seed}, "
        f"timeout {protocol.timeout_s:g} s, sandbox {protocol.sandbox or 'unknown'}",
        "baseline": f"{record.baseline.source}: {record.baseline.name}",
        "judge": record.judge_version,
        "versions": f"TileLang {environment.tilelang or 'none'}, torch {environment.torch}",
        "suites": ", ".join(suite.suite for suite in record.score.suites),
        "gate": record.score.gate if record.score.gate in ("off", "not_run") else "on",
    }
