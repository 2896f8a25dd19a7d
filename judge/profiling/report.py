"""What a profile says: plain data that every view shows."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from judge.child.protocol import ProfiledRow
from judge.profiling.commands import ProfilerError
from judge.profiling.metrics import KernelProfile
from judge.text import plain

SCHEMA_VERSION = 1
_NSYS_COLUMNS = ("Name", "Instances", "Total Time (ns)")


@dataclass(frozen=True)
class TimeRow:
    """Time of one kernel or operator in all profiled calls together.

    kind: cuda for what ran on the device, cpu for the host. times: how often it ran. total_us:
    microseconds, summed. share: of all rows of its kind, 0 to 1.
    """

    name: str
    kind: str
    times: int
    total_us: float
    share: float


@dataclass(frozen=True)
class ProfileReport:
    """One profile. launches: ncu's figures. times: what nsys and torch know. files: written ones.

    calls: profiled calls of the submission (ncu: at most, it ends after the launches asked for).
    """

    tool: str
    submission: str
    case: str
    device: str
    calls: int
    launches: list[KernelProfile] = field(default_factory=list)
    times: list[TimeRow] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    schema_version: int = SCHEMA_VERSION


def to_json(report: ProfileReport) -> str:
    """The report as indented JSON text."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def time_rows(rows: Sequence[ProfiledRow]) -> list[TimeRow]:
    """Rows with their shares, in the order given; names made safe to print."""
    totals: dict[str, float] = {}
    for row in rows:
        totals[row.kind] = totals.get(row.kind, 0.0) + row.total_us
    return [
        TimeRow(
            name=plain(row.name, 200),
            kind=plain(row.kind, 20),
            times=row.times,
            total_us=row.total_us,
            share=row.total_us / totals[row.kind] if totals[row.kind] else 0.0,
        )
        for row in rows
    ]


def parse_nsys_times(text: str, source: str) -> list[TimeRow]:
    """The rows of nsys's report cuda_gpu_kern_sum as CSV; lines before it are passed over.

    Raises ProfilerError with `source`, line and what is wrong there.
    """
    lines = text.splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith("Time (%),")), None)
    if start is None:
        raise ProfilerError(f"{source}: no table of kernels; did the timed calls launch any?")
    names = next(csv.reader([lines[start]]))
    absent = [name for name in _NSYS_COLUMNS if name not in names]
    if absent:
        raise ProfilerError(f"{source}:{start + 1}: no column {absent[0]!r}")
    rows = []
    for number, line in enumerate(lines[start + 1 :], start=start + 2):
        if not line.strip():
            break
        cells = dict(zip(names, next(csv.reader([line])), strict=False))
        try:
            name, times, total_ns = (cells[column] for column in _NSYS_COLUMNS)
            rows.append(ProfiledRow(name, "cuda", int(times), float(total_ns) / 1e3))
        except (KeyError, ValueError):
            raise ProfilerError(f"{source}:{number}: not a row of kernel times") from None
    return time_rows(rows)
