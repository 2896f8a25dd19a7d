"""The cases that can be graded, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from judge.case import Case
from judge.views.cells import gate_text, state_text

_SIZES = ("B", "T", "Hq", "Hv")


def print_cases(cases: Sequence[tuple[str, Case]], console: Console) -> None:
    """Print a row a case. cases: with their suites' names."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for title in ("suite", "case", *_SIZES, "gate", "state"):
        table.add_column(title, justify="right" if title in _SIZES else "left", no_wrap=True)
    for suite, case in cases:
        sizes = (case.batch, case.tokens, case.qk_heads, case.v_heads)
        table.add_row(
            Text(suite), Text(case.name), *map(str, sizes), gate_text(case), state_text(case)
        )
    console.print(table)
