"""A Record as a table for people, fitted to the width of the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from judge.record import CaseResult, Record
from judge.scoring import speed_up
from judge.text import plain
from judge.verdict import Verdict
from judge.views.cells import gate_text, state_text
from judge.views.summary import summary_lines

_NONE = Text("–", style="dim")


@dataclass(frozen=True)
class _Column:
    """keep: the smallest goes first where the terminal is too narrow; case and verdict stay."""

    title: str
    right: bool
    keep: float
    cells: list[Text]

    @property
    def width(self) -> int:
        return max([len(self.title), *(cell.cell_len for cell in self.cells)])


def print_table(record: Record, console: Console) -> None:
    """Print cases, failures, scores and what they were measured with.

    Where the console is too narrow, the least important columns are left out and, last, case
    names are cut; colour is left to the console, which knows NO_COLOR and pipes. Everything that
    a submission could have written goes in as plain text, never as markup.
    """
    heading = Text.assemble("Gated DeltaNet prefill: ", (plain(record.submission.name, 60), "bold"))
    if record.interrupted:
        heading.append("  interrupted, finished cases only", style="yellow")
    console.print(heading)
    console.print()
    if record.results:
        console.print(_case_table(record, console.width))
        console.print()
    failures = _failures(record.results)
    if failures:
        console.print(_pairs(failures))
        console.print()
    console.print(_pairs(summary_lines(record)))


def _case_table(record: Record, width: int) -> Table:
    columns, gap = _fit(_columns(record), width)
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, gap - 1, 0, 0),  # the box's own divider is one column wide
        header_style="bold",
    )
    for column in columns:
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=True,
            overflow="ellipsis",
            min_width=None if column.title == "case" else column.width,
        )
    suites = list(dict.fromkeys(result.suite for result in record.results))
    for suite in suites:
        if len(suites) > 1:
            table.add_row(Text(plain(suite, 40), style="bold cyan"))
        for index, result in enumerate(record.results):
            if result.suite == suite:
                table.add_row(*(column.cells[index] for column in columns))
        table.add_section()
    return table


def _fit(columns: Sequence[_Column], width: int) -> tuple[list[_Column], int]:
    """The columns that fit beside each other, and the gap between them, 2 or else 1."""
    kept = list(columns)
    while True:
        needed = sum(column.width for column in kept)
        for gap in (2, 1):
            if needed + gap * (len(kept) - 1) <= width:
                return kept, gap
        least = min(kept, key=lambda column: column.keep)
        if len(kept) == 2:
            return kept, 1
        kept.remove(least)


def _columns(record: Record) -> list[_Column]:
    results = record.results

    def column(title: str, keep: float, cells: list[Text], right: bool = True) -> _Column:
        return _Column(title, right, keep, cells)

    columns = [
        column("case", 99, [Text(plain(r.case.name, 60)) for r in results], right=False),
        column("B", 5, [_size(r.case.batch) for r in results]),
        column("T", 6, [_size(r.case.tokens) for r in results]),
        column("Hq", 3, [_size(r.case.qk_heads) for r in results]),
        column("Hv", 4, [_size(r.case.v_heads) for r in results]),
        column("state", 1, [_state(r) for r in results], right=False),
        column("gate", 0, [gate_text(r.case) for r in results], right=False),
        column("verdict", 98, [_verdict(r.verdict) for r in results], right=False),
        column("median ms", 9, [_median(r) for r in results]),
        column("gpu ms", 1.5, [_gpu(r) for r in results]),
        column("spread", 2, [_spread(r) for r in results]),
        column("speed-up", 7, [_number(speed_up(r, record.baseline), "×") for r in results]),
        column("score", 8, [_number(r.score) for r in results]),
    ]
    return [column for column in columns if any(cell is not _NONE for cell in column.cells)]


def _size(size: int) -> Text:
    """A number of batches, tokens or heads; none where the record does not tell it."""
    return Text(str(size)) if size else _NONE


def _state(result: CaseResult) -> Text:
    return state_text(result.case) if result.case.batch else _NONE


def _verdict(verdict: Verdict) -> Text:
    style = {Verdict.PASS: "green", Verdict.NOT_RUN: "yellow"}.get(verdict, "bold red")
    return Text(verdict.value, style=style)


def _median(result: CaseResult) -> Text:
    return Text(f"{result.timing.median_ms:.3f}") if result.timing else _NONE


def _gpu(result: CaseResult) -> Text:
    return _NONE if result.gpu_ms is None else Text(f"{result.gpu_ms:.3f}")


def _spread(result: CaseResult) -> Text:
    return Text(f"{100 * result.timing.spread:.1f} %") if result.timing else _NONE


def _number(value: float | None, unit: str = "") -> Text:
    return _NONE if value is None else Text(f"{value:.2f}{unit}")


def _failures(results: Sequence[CaseResult]) -> list[tuple[str, Text]]:
    """What went wrong by case; said once where it is the same for many, as an import error is."""
    names: dict[tuple[Verdict, str], list[str]] = {}
    for result in results:
        if result.verdict is not Verdict.PASS:
            names.setdefault((result.verdict, plain(result.detail)), []).append(result.case.name)
    return [
        (
            cases[0],
            Text.assemble(
                _verdict(verdict),
                f" and {len(cases) - 1} more" if len(cases) > 1 else "",
                f": {detail}" if detail else "",
            ),
        )
        for (verdict, detail), cases in names.items()
    ]


def _pairs(pairs: Sequence[tuple[str, Text]]) -> Table:
    """Names and values in two columns, long values wrapped inside theirs."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="bold", overflow="ellipsis", max_width=32)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(Text(plain(name, 60)), value)
    return grid
