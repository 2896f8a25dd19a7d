"""Boards as tables, Markdown, CSV and JSON; whatever a participant wrote goes in as plain text.

Table and Markdown may be published and give no time of a hidden case; CSV and JSON give all.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from judge.leaderboard import Board, Cell, Row, Untimed
from judge.text import csv_cell, plain
from judge.verdict import Rules

if TYPE_CHECKING:
    from rich.console import Console

Column = tuple[str, Callable[[Row], str]]

_NONE = "–"
_NAME_WIDTH = 24
_CASE_WIDTH = 18
_MARKDOWN = re.compile(r"([\\`*_{}\[\]|~$@#]|(?<=:)//|(?<=www)\.)")


def print_boards(boards: Sequence[Board], console: Console) -> None:
    """Print every board: its conditions, ranks and scores, then the cases, as many as fit a row."""
    from rich.text import Text  # the other formats start without rich

    for number, board in enumerate(boards):
        if number:
            console.print()
        for line in heading(board):
            style = "bold" if line.startswith("Board") else ""
            console.print(Text(line, style=style), soft_wrap=True)
        console.file.write(_grid(_columns(board), board.rows) + "\n")
        fitting = max(1, (console.width - _NAME_WIDTH - 2) // (_CASE_WIDTH + 2))
        for start in range(0, len(board.cases), fitting):
            columns = _case_columns(board.cases[start : start + fitting])
            console.file.write(_grid(columns, board.rows) + "\n")
        for row in board.rows:
            if said := _said(row):
                console.print(Text(f"{_name(row)}: {said}", style="yellow"), soft_wrap=True)


def markdown(boards: Sequence[Board]) -> str:
    """Every board as a heading, its conditions and one table."""
    parts = []
    for board in boards:
        title, *conditions = heading(board)
        columns = [*_columns(board), *_case_columns(board.cases)[1:], ("remark", _said)]
        lines = [f"## {_escaped(title)}", "", *(f"- {_escaped(c)}" for c in conditions), ""]
        lines.append("| " + " | ".join(_escaped(name) for name, _ in columns) + " |")
        lines.append("|" + " --- |" * len(columns))
        lines += [
            "| " + " | ".join(_escaped(plain(cell(row))) for _, cell in columns) + " |"
            for row in board.rows
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def boards_csv(boards: Sequence[Board]) -> str:
    """One row a participant and board; `board` numbers the boards, conditions are columns.

    Scores with two decimals, medians in ms with six, empty where there is none.
    """
    suites, cases, untimed = (
        list(dict.fromkeys(name for board in boards for name in getattr(board, kind)))
        for kind in ("suites", "cases", "untimed")
    )
    conditions = list(boards[0].conditions) if boards else []
    header = ["board", "rank", "id", "name", "group", "total", *suites]
    for case in cases:
        header += [f"{case} verdict", f"{case} score", f"{case} median_ms"]
    header += [f"{suite} untimed" for suite in untimed]
    header += ["rules", "attempt", "tries", "created", "ranked by", "remark", *conditions]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for board in boards:
        for row in board.rows:
            who = row.participant
            cells: list[str] = [str(board.number), str(row.rank or ""), who.id, row.name, who.group]
            cells += [_score(row.total, ""), *(_score(row.scores.get(s), "") for s in suites)]
            for case in cases:
                cells += _three(row.cells.get(case))
            cells += [_passed(row.untimed.get(suite), "") for suite in untimed]
            cells += [row.rules.value if row.rules else "", row.attempt, str(row.tries)]
            cells += [row.created, board.by, _said(row), *board.conditions.values()]
            writer.writerow(csv_cell(cell) for cell in cells)
    return text.getvalue()


def boards_json(boards: Sequence[Board]) -> str:
    """The boards as they are, as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(boards), indent=2).decode()


def heading(board: Board) -> list[str]:
    """What a board is of, a line each; that boards are not comparable where there are several."""
    lines = [f"Board {board.number} of {board.of}, ranked by {plain(board.by, 64)}"]
    if board.of > 1:
        lines.append("Boards are graded under different conditions: never compare ranks or scores.")
    if not board.official:
        lines.append("Practice: times are a host clock's, not official.")
    return lines + [f"{name}: {plain(value)}" for name, value in board.conditions.items()]


def _columns(board: Board) -> list[Column]:
    return [
        ("rank", lambda row: str(row.rank or _NONE)),
        ("name", _name),
        ("id", lambda row: plain(row.participant.id, _NAME_WIDTH)),
        ("total", lambda row: _score(row.total)),
        *((suite, _of_suite(suite)) for suite in board.suites),
        *((f"{suite} untimed", _of_untimed(suite)) for suite in board.untimed),
        ("rules", lambda row: row.rules.value if row.rules not in (None, Rules.OK) else ""),
        ("tries", lambda row: str(row.tries)),
        ("when (UTC)", lambda row: row.created[:16].replace("T", " ")),
    ]


def _case_columns(cases: Sequence[str]) -> list[Column]:
    return [("name", _name), *((case, _of_case(case)) for case in cases)]


def _of_suite(suite: str) -> Callable[[Row], str]:
    return lambda row: _score(row.scores.get(suite))


def _of_untimed(suite: str) -> Callable[[Row], str]:
    return lambda row: _passed(row.untimed.get(suite))


def _of_case(case: str) -> Callable[[Row], str]:
    return lambda row: _cell(row.cells.get(case))


def _grid(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """Aligned columns; laid out here, as rich takes seconds for a class of a thousand."""
    from rich.cells import cell_len

    grid = [[plain(name, 40), *(cell(row) for row in rows)] for name, cell in columns]
    for column in grid:
        widths = [len(cell) if cell.isascii() else cell_len(cell) for cell in column]
        width = max(widths)
        column[:] = [cell + " " * (width - w) for cell, w in zip(column, widths, strict=True)]
        column.insert(1, "─" * width)
    return "\n".join("  ".join(line).rstrip() for line in zip(*grid, strict=True)) + "\n"


def _name(row: Row) -> str:
    return plain(row.name, _NAME_WIDTH)


def _said(row: Row) -> str:
    return plain("; ".join(text for text in (row.why, row.remark) if text))


def _score(value: float | None, none: str = _NONE) -> str:
    return none if value is None else f"{value:.2f}"


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return _NONE
    if cell.median_ms is None or (cell.hidden and cell.score is None):
        return cell.verdict.value
    score = _score(cell.score)
    return score if cell.hidden else f"{score}  {cell.median_ms:.3f} ms"


def _three(cell: Cell | None) -> list[str]:
    if cell is None:
        return ["", "", ""]
    median = "" if cell.median_ms is None else f"{cell.median_ms:.6f}"
    return [cell.verdict.value, _score(cell.score, ""), median]


def _passed(untimed: Untimed | None, none: str = _NONE) -> str:
    if untimed is None or not untimed.ran:
        return none
    failure = f" {untimed.failure}" if untimed.failure else ""
    return f"{untimed.passed}/{untimed.ran}{failure}"


def _escaped(text: str) -> str:
    """Text as Markdown that means itself."""
    return _MARKDOWN.sub(r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))
