"""The part of a submission's log that everybody may read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from judge.case import HIDDEN_SUITE
from judge.record import Record
from judge.text import plain
from judge.verdict import Verdict

_JUDGES = "[judge] "
_CHILDS = "| "
_MOST_READ = 8 * 2**20  # bytes; no log is larger
_LINES_A_CASE = 12
_LINES = 80
_CHARACTERS = 160


@dataclass(frozen=True)
class Section:
    """What was printed while a case was judged. cut: whether lines are missing at its end."""

    case: str
    lines: Sequence[str]
    cut: bool


def log_excerpt(record: Record) -> list[Section]:
    """The first lines that a submission printed in each of its cases, those of no hidden one.

    record: whole, as graded. A child that has seen a hidden case could print it in any later one,
    so that the excerpt ends where the first hidden case begins. Empty where there is no log.
    """
    try:
        with Path(record.submission.log).open("rb") as file:
            text = file.read(_MOST_READ).decode("utf-8", "replace")
    except (OSError, ValueError):
        return []
    cases = {f"{r.suite}/{r.case.name}": r for r in record.results}
    secret = [r.case.name for r in record.results if r.suite == HIDDEN_SUITE]
    sections: list[Section] = []
    case, lines = "", []
    for line in text.split("\n"):  # the only separator that a child cannot write without its bar
        if line.startswith(_JUDGES):
            said = line.removeprefix(_JUDGES)
            if said.split(":")[0] in Verdict.__members__:
                continue
            _close(sections, case, lines)
            case, lines = "", []
            if said.startswith(f"{HIDDEN_SUITE}/"):
                return sections
            if said in cases:
                case = cases[said].case.name
        elif case and line.startswith(_CHILDS) and not any(name in line for name in secret):
            lines.append(line.removeprefix(_CHILDS))
    _close(sections, case, lines)
    return sections


def _close(sections: list[Section], case: str, lines: list[str]) -> None:
    shown = [plain(line, _CHARACTERS) for line in lines if line.strip()]
    room = min(_LINES_A_CASE, _LINES - sum(len(section.lines) for section in sections))
    if case and shown and room > 0:
        sections.append(Section(case, shown[:room], len(shown) > room))
