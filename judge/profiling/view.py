"""A `ProfileReport` for people and programs: tables on a terminal, CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from judge.profiling.metrics import KernelProfile, Sizes, representatives
from judge.profiling.report import ProfileReport, TimeRow
from judge.profiling.stalls import MEANINGS, label
from judge.text import csv_cell, plain

NONE = "–"
_SHOWN_ROWS = 15
_FIGURES: tuple[tuple[str, Callable[[KernelProfile], str]], ...] = (
    ("duration", lambda p: _number(p.duration_us, "µs", 1)),
    ("grid, block", lambda p: f"{_sizes(p.grid)}, {_sizes(p.block)}"),
    ("registers a thread", lambda p: _number(p.registers, "", 0)),
    ("shared memory, dynamic", lambda p: _number(p.dynamic_shared_bytes, "B", 0)),
    ("shared memory, static", lambda p: _number(p.static_shared_bytes, "B", 0)),
    ("SMs busy", lambda p: _number(p.sms_busy_pct, "%", 1)),
    ("occupancy achieved", lambda p: _number(p.occupancy_active_pct, "%", 1)),
    ("occupancy possible", lambda p: _number(p.occupancy_limit_pct, "%", 1)),
    ("tensor cores active", lambda p: _number(p.tensor_active_pct, "%", 1)),
    ("issue slots busy", lambda p: _number(p.issue_active_pct, "%", 1)),
    ("DRAM throughput", lambda p: _number(p.dram_pct, "%", 1)),
    ("DRAM bandwidth", lambda p: _number(p.dram_gbs, "GB/s", 1)),
    ("shared-memory throughput", lambda p: _number(p.shared_pct, "%", 1)),
)
_CSV_FIGURES = (
    *("launch", "kernel", "grid", "block", "duration_us", "registers", "static_shared_bytes"),
    *("dynamic_shared_bytes", "sms_busy_pct", "occupancy_active_pct", "occupancy_limit_pct"),
    *("tensor_active_pct", "issue_active_pct", "dram_pct", "dram_gbs", "shared_pct"),
)


def print_report(report: ProfileReport, console: Console) -> None:
    """Print the figures, the stalls of each kernel, or the times, and what was written where."""
    console.print(
        Text.assemble(
            (plain(report.submission, 60), "bold"),
            f" on {plain(report.case, 60)}, {plain(report.device, 60)}, by {report.tool}",
        )
    )
    console.print()
    if report.launches:
        shown = representatives(report.launches)
        console.print(_figure_table(shown, report.launches))
        for profile in shown:
            console.print()
            console.print(Text(plain(profile.kernel, 200), style="bold"), overflow="ellipsis")
            console.print(_stall_table(profile))
    if report.times:
        console.print(_time_table(report.times, report.calls))
    console.print()
    for note in report.notes:
        console.print(Text(plain(note), style="yellow"))
    for file in report.files:
        console.print(Text(f"written: {file}"), soft_wrap=True)


def to_csv(report: ProfileReport) -> str:
    """One row a launch (ncu) or a row a kernel or operator (nsys, torch).

    Units are in the columns' names. stall_<reason> is warp cycles an issued instruction; empty
    where there is none.
    """
    if report.launches:
        reasons = list(dict.fromkeys(s.reason for p in report.launches for s in p.stalls))
        rows = [[*_csv_figures(p), *_csv_stalls(p, reasons)] for p in report.launches]
        return _csv([*_CSV_FIGURES, *(f"stall_{reason}" for reason in reasons)], rows)
    return _csv(
        ["name", "kind", "times", "total_us", "share"],
        ([r.name, r.kind, r.times, f"{r.total_us:.3f}", f"{r.share:.6f}"] for r in report.times),
    )


def _figure_table(shown: Sequence[KernelProfile], launches: Sequence[KernelProfile]) -> Table:
    """Figures in rows, kernels in columns; a kernel launched more than once stands there once."""
    table = _table()
    table.add_column("kernel", no_wrap=True)
    for profile in shown:
        table.add_column(Text(plain(profile.kernel, 40)), justify="right", overflow="fold")
    for name, show in _FIGURES:
        table.add_row(name, *(show(profile) for profile in shown))
    durations = [
        [p.duration_us for p in launches if _shape(p) == _shape(profile)] for profile in shown
    ]
    if any(len(of_kernel) > 1 for of_kernel in durations):
        cells = (", ".join(_number(d, "", 1) for d in of_kernel) for of_kernel in durations)
        table.add_row("duration of each launch, µs", *cells)
    return table


def _stall_table(profile: KernelProfile) -> Table | Text:
    if not profile.stalls:
        return Text("no stall reasons were collected", style="yellow")
    table = _table()
    table.add_column("a warp waits for", no_wrap=True)
    table.add_column("cycles", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("that is", overflow="fold")
    for stall in profile.stalls:
        if stall.cycles > 0:
            table.add_row(
                label(plain(stall.reason, 40)),
                f"{stall.cycles:.2f}",
                f"{100 * stall.share:.1f} %",
                Text(MEANINGS.get(stall.reason, NONE), style="dim"),
            )
    total = sum(stall.cycles for stall in profile.stalls)
    table.add_section()
    table.add_row("between two instructions of a warp", f"{total:.2f}", "100 %", "")
    return table


def _time_table(rows: Sequence[TimeRow], calls: int) -> Table:
    table = _table()
    table.add_column("kernel or operator", overflow="ellipsis", no_wrap=True, ratio=1)
    for title in ("where", "times", "µs a call", "share"):
        table.add_column(title, justify="left" if title == "where" else "right", no_wrap=True)
    for row in rows[:_SHOWN_ROWS]:
        table.add_row(
            Text(plain(row.name, 200)),
            row.kind,
            str(row.times),
            f"{row.total_us / calls:,.1f}",
            f"{100 * row.share:.1f} %",
        )
    return table


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")


def _shape(profile: KernelProfile) -> tuple[str, Sizes | None, Sizes | None]:
    return profile.kernel, profile.grid, profile.block


def _number(value: float | None, unit: str, digits: int) -> str:
    if value is None:
        return NONE
    return f"{value:,.{digits}f} {unit}".rstrip()


def _sizes(sizes: Sizes | None) -> str:
    return NONE if sizes is None else "×".join(str(size) for size in sizes)


def _csv_figures(profile: KernelProfile) -> Iterable[str]:
    for name in _CSV_FIGURES:
        value = getattr(profile, name)
        if value is None:
            yield ""
        elif isinstance(value, tuple):
            yield "x".join(str(size) for size in value)
        else:
            yield f"{value:.6g}" if isinstance(value, float) else csv_cell(str(value))


def _csv_stalls(profile: KernelProfile, reasons: Sequence[str]) -> Iterable[str]:
    cycles = {stall.reason: stall.cycles for stall in profile.stalls}
    return (f"{cycles[reason]:.6g}" if reason in cycles else "" for reason in reasons)


def _csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([csv_cell(cell) if isinstance(cell, str) else cell for cell in row])
    return text.getvalue()
