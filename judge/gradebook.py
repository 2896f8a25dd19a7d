"""From a board to a gradebook: a line for everybody on the roster, with what is late."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

import msgspec

from judge.leaderboard import Board, Row, is_late
from judge.roster import Participant
from judge.text import csv_cell

_COLUMNS = ("id", "name", "group", "score", "attempt", "submitted", "late", "tries", "remark")


@dataclass(frozen=True)
class Entry:
    """One line. score: what the board ranks by, None where there is none. submitted: ISO 8601 UTC,
    empty where nothing was. late: None without a deadline or a submission."""

    id: str
    name: str
    group: str
    score: float | None
    attempt: str
    submitted: str
    late: bool | None
    tries: int
    remark: str


def gradebook(
    roster: Mapping[str, Participant], board: Board | None, deadline: datetime | None
) -> list[Entry]:
    """Entries in the roster's order; then those on the board who are not on it, and said to be."""
    rows = {row.participant.id: row for row in board.rows} if board is not None else {}
    entries = [_entry(who, rows.get(who.id), deadline, "") for who in roster.values()]
    strangers = [row for row in rows.values() if row.participant.id not in roster]
    strangers.sort(key=lambda row: row.participant.id)
    return entries + [_entry(r.participant, r, deadline, "not on the roster") for r in strangers]


def gradebook_csv(entries: list[Entry]) -> str:
    """A header and a row an entry; scores with two decimals, late as yes or no."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for entry in entries:
        values = asdict(entry)
        values["score"] = "" if entry.score is None else f"{entry.score:.2f}"
        values["late"] = {None: "", True: "yes", False: "no"}[entry.late]
        writer.writerow(csv_cell(str(values[column])) for column in _COLUMNS)
    return text.getvalue()


def gradebook_jsonl(entries: list[Entry]) -> str:
    """A JSON object a line."""
    return "".join(msgspec.json.encode(entry).decode() + "\n" for entry in entries)


def _entry(who: Participant, row: Row | None, deadline: datetime | None, remark: str) -> Entry:
    if row is None:
        return Entry(who.id, who.name, who.group, None, "", "", None, 0, "nothing graded")
    late = is_late(row, deadline) if deadline is not None and row.submitted else None
    practice = f"practice: {row.practice}" if row.practice else ""
    return Entry(
        *(who.id, who.name, who.group, row.value, row.attempt, row.submitted, late, row.tries),
        remark="; ".join(text for text in (remark, practice, row.why or row.remark) if text),
    )
