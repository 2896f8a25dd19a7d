"""The lab's extended table: a submission beside the public implementations, case by case."""

from __future__ import annotations

from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from judge.implementations import CORE, FULL, SIMPLE, STUDENT
from judge.record import Prediction, Record, Timing
from judge.verdict import Verdict
from judge.views.csv_rows import csv_text, six_decimals

COLUMNS = (
    *("case", "scope", "implementation", "correctness", "median_ms"),
    "reference_over_student",
)
STUDENT_CORE = "student_core"


@dataclass(frozen=True)
class BenchmarkRow:
    """One row. ratio: its median over that of the student's row of the same scope.

    gpu_ms: a call without its host cost, for information.
    """

    case: str
    scope: str
    implementation: str
    passed: bool
    median_ms: float | None
    ratio: float | None
    gpu_ms: float | None


def benchmark_rows(record: Record) -> list[BenchmarkRow]:
    """Rows in the lab's order: a case's core ones, then its whole forwards.

    A public core is compared with the submission's core. The judge's simple implementation is in
    no row: the lab's table has none.
    """
    rows = []
    for result in record.results:
        name, core = result.case.name, _median(result.timing)
        passed = result.verdict is Verdict.PASS
        rows.append(BenchmarkRow(name, STUDENT_CORE, STUDENT, passed, core, None, result.gpu_ms))
        rivals = [one for one in record.rivals if one.case == name and one.implementation != SIMPLE]
        whole = next((_median(one.timing) for one in rivals if one.implementation == STUDENT), None)
        for scope, student in ((CORE, core), (FULL, whole)):
            for one in rivals:
                if one.scope != scope:
                    continue
                median = _median(one.timing)
                known = None not in (median, student) and one.implementation != STUDENT
                rows.append(
                    BenchmarkRow(
                        name,
                        scope,
                        one.implementation,
                        one.verdict is Verdict.PASS,
                        median,
                        median / student if known else None,
                        one.gpu_ms,
                    )
                )
    return rows


def benchmark_csv(record: Record) -> str:
    """The lab's extended CSV, which has no row for the core of a public implementation."""
    return csv_text(
        COLUMNS,
        (
            {
                "case": row.case,
                "scope": row.scope,
                "implementation": row.implementation,
                "correctness": _word(row.passed),
                "median_ms": six_decimals(row.median_ms),
                "reference_over_student": six_decimals(row.ratio),
            }
            for row in benchmark_rows(record)
            if row.scope != CORE
        ),
    )


def print_benchmarks(record: Record, console: Console) -> None:
    """All rows as a table for people."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for title in ("case", "scope", "implementation", "result"):
        table.add_column(title, no_wrap=True)
    for title in ("median ms", "gpu ms", "of student"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in benchmark_rows(record):
        table.add_row(
            *(Text(text) for text in (row.case, row.scope, row.implementation)),
            Text(_word(row.passed), style="green" if row.passed else "bold red"),
            Text("–" if row.median_ms is None else f"{row.median_ms:.3f}"),
            Text("–" if row.gpu_ms is None else f"{row.gpu_ms:.3f}"),
            Text("–" if row.ratio is None else f"{row.ratio:.3f}×"),
        )
    console.print()
    console.print(table)


def print_prediction(prediction: Prediction, console: Console) -> None:
    """What a slice would show, as a table that says that nothing there was measured."""
    title = f"Predicted for {prediction.slice}, not measured: times {prediction.clock_factor:.3f}"
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for heading in ("case", "scope", "implementation"):
        table.add_column(heading, no_wrap=True)
    for heading in ("predicted ms", "predicted score"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in prediction.times:
        table.add_row(
            *(Text(text) for text in (one.case, one.scope, one.implementation)),
            Text(f"{one.milliseconds:.3f}"),
            Text("–" if one.score is None else f"{one.score:.2f}"),
        )
    console.print()
    console.print(Text(title, style="yellow"))
    console.print(table)


def _median(timing: Timing | None) -> float | None:
    return None if timing is None else timing.median_ms


def _word(passed: bool) -> str:
    return "PASS" if passed else "FAIL"
