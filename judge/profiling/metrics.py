"""Nsight Compute's raw CSV page → `KernelProfile`, one a launch.

The page (`ncu --import REPORT --page raw --csv`) has a row of names, a row of units whose ID is
empty, and a row a launch. Which metrics it holds depends on ncu's version and the GPU: a figure
whose metric is not there is None, and named in `missing`. Metric names: `ncu --query-metrics
--chip gh100`, and the .section files of `--set full`.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_STALLS = (
    re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio"),
    re.compile(r"smsp__average_warp_latency_issue_stalled_(\w+)\.ratio"),
)
_SIZES = re.compile(r"\(?\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\)?")
_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SECONDS = {
    **{"second": 1.0, "msecond": 1e-3, "usecond": 1e-6, "nsecond": 1e-9},
    **{"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
}
_NO_VALUE = frozenset({"", "n/a", "nan", "no data", "(!) n/a", "(!) nan"})

Sizes = tuple[int, int, int]


class NcuFormatError(ValueError):
    """Text that is not ncu's raw CSV page; one line with the place and what is wrong there."""


@dataclass(frozen=True)
class Stall:
    """One state of a warp that waits to issue.

    cycles: warp cycles spent in it for one issued instruction. share: of the sum over all states,
    `selected` (the cycle in which the warp does issue) included; 0 to 1.
    """

    reason: str
    cycles: float
    share: float


@dataclass(frozen=True)
class KernelProfile:
    """What ncu measured of one launch; None where it did not.

    launch: ncu's number of it. duration_us: microseconds, caches flushed before. *_bytes: shared
    memory of a block. *_pct: percent. sms_busy_pct: mean share of the launch's cycles in which an
    SM had a block; the percentages named `active` are over such cycles only, dram_pct and
    shared_pct over all. dram_gbs: GB/s (1e9 bytes), read and written. stalls: longest first.
    """

    launch: int
    kernel: str
    grid: Sizes | None = None
    block: Sizes | None = None
    duration_us: float | None = None
    registers: int | None = None
    static_shared_bytes: int | None = None
    dynamic_shared_bytes: int | None = None
    sms_busy_pct: float | None = None
    occupancy_active_pct: float | None = None
    occupancy_limit_pct: float | None = None
    tensor_active_pct: float | None = None
    issue_active_pct: float | None = None
    dram_pct: float | None = None
    dram_gbs: float | None = None
    shared_pct: float | None = None
    stalls: list[Stall] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def parse_raw_page(text: str, source: str) -> list[KernelProfile]:
    """The launches of a raw page, in its order; `source` names it in errors.

    Lines before the names and ncu's own lines (==PROF== …) are passed over. Raises NcuFormatError.
    """
    rows = _csv_rows(text)
    for _, names in rows:
        if "Kernel Name" in names:
            break
    else:
        raise NcuFormatError(
            f'{source}: no row of names with "Kernel Name"; '
            "is this the output of ncu --page raw --csv?"
        )
    if "Metric Name" in names:
        raise NcuFormatError(f"{source}: a row a metric; print ncu's raw page: --page raw --csv")
    profiles: list[KernelProfile] = []
    units: list[str] | None = None
    for line, cells in rows:
        if len(cells) != len(names):
            raise NcuFormatError(
                f"{source}:{line}: {len(cells)} cells where the row of names has {len(names)}"
            )
        if units is None:
            if cells[0].strip():
                raise NcuFormatError(f"{source}:{line}: the row of units is missing")
            units = cells
        else:
            profiles.append(_Launch(f"{source}:{line}", names, units, cells).profile())
    if not profiles:
        raise NcuFormatError(f"{source}: no launch below the row of names")
    return profiles


def representatives(profiles: Sequence[KernelProfile]) -> list[KernelProfile]:
    """Of each kernel and shape the launch of median duration; longest kernels first."""
    groups: dict[tuple[str, Sizes | None, Sizes | None], list[KernelProfile]] = {}
    for profile in profiles:
        groups.setdefault((profile.kernel, profile.grid, profile.block), []).append(profile)
    chosen = [
        sorted(group, key=lambda p: p.duration_us or 0.0)[(len(group) - 1) // 2]
        for group in groups.values()
    ]
    return sorted(chosen, key=lambda p: -(p.duration_us or 0.0))


def _csv_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.startswith("=="):
            yield number, next(csv.reader([line]))


class _Launch:
    """Reads the figures of one row."""

    def __init__(
        self, place: str, names: Sequence[str], units: Sequence[str], cells: Sequence[str]
    ) -> None:
        self._place = place
        self._cells = dict(zip(names, cells, strict=True))
        self._units = dict(zip(names, units, strict=True))

    def profile(self) -> KernelProfile:
        """The row as a profile."""
        duration_s = self._number("gpu__time_duration.sum")
        busy = self._number("sm__cycles_active.avg")
        elapsed = self._number("sm__cycles_elapsed.max", "gpc__cycles_elapsed.max")
        dram_bytes_s = self._number("dram__bytes.sum.per_second") or self._sum(
            "dram__bytes_read.sum.per_second", "dram__bytes_write.sum.per_second"
        )
        figures = {
            "grid": self._sizes("Grid Size", "launch__grid_dim_"),
            "block": self._sizes("Block Size", "launch__block_dim_"),
            "duration_us": _times(duration_s, 1e6),
            "registers": self._whole("launch__registers_per_thread"),
            "static_shared_bytes": self._whole("launch__shared_mem_per_block_static"),
            "dynamic_shared_bytes": self._whole("launch__shared_mem_per_block_dynamic"),
            "sms_busy_pct": 100 * busy / elapsed if busy is not None and elapsed else None,
            "occupancy_active_pct": self._number(
                "sm__warps_active.avg.pct_of_peak_sustained_active"
            ),
            "occupancy_limit_pct": self._number("sm__maximum_warps_per_active_cycle_pct"),
            # On Hopper WGMMA counts here too; the older names are those of one kind of product.
            "tensor_active_pct": self._number(
                "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
                "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
                "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
            ),
            "issue_active_pct": self._number("smsp__issue_active.avg.pct_of_peak_sustained_active"),
            "dram_pct": self._number(
                "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
                "dram__throughput.avg.pct_of_peak_sustained_elapsed",
            ),
            "dram_gbs": _times(dram_bytes_s, 1e-9),
            "shared_pct": self._number(
                "l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed",
                "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed",
            ),
            "stalls": self._stalls(),
        }
        missing = [name for name, value in figures.items() if value is None or value == []]
        return KernelProfile(
            launch=self._launch(), kernel=self._cells["Kernel Name"], **figures, missing=missing
        )

    def _launch(self) -> int:
        number = self._number("ID")
        if number is None:
            raise NcuFormatError(f"{self._place}: ID: missing, should be the launch's number")
        return int(number)

    def _stalls(self) -> list[Stall]:
        for pattern in _STALLS:
            cycles = {
                found[1]: value
                for name in self._cells
                if (found := pattern.fullmatch(name)) and (value := self._number(name)) is not None
            }
            total = math.fsum(cycles.values())
            if total > 0:
                ordered = sorted(cycles.items(), key=lambda item: -item[1])
                return [Stall(reason, value, value / total) for reason, value in ordered]
        return []

    def _number(self, *names: str) -> float | None:
        """The first of these metrics that has a value, in seconds, bytes or its own unit."""
        for name in names:
            text = self._cells.get(name, "").strip()
            if text.lower() in _NO_VALUE:
                continue
            try:
                # thousands are separated: 1,234.5
                return float(text.replace(",", "")) * _scale(self._units[name])
            except ValueError:
                raise NcuFormatError(
                    f"{self._place}: {name}: {text[:40]!r} is not a number"
                ) from None
        return None

    def _sum(self, *names: str) -> float | None:
        values = [self._number(name) for name in names]
        return math.fsum(values) if None not in values else None

    def _whole(self, name: str) -> int | None:
        value = self._number(name)
        return None if value is None else round(value)

    def _sizes(self, column: str, metric: str) -> Sizes | None:
        found = _SIZES.fullmatch(self._cells.get(column, "").strip())
        values = found.groups() if found else [self._whole(metric + axis) for axis in "xyz"]
        return None if None in values else (int(values[0]), int(values[1]), int(values[2]))


def _scale(unit: str) -> float:
    """Factor from a unit of ncu's to seconds, bytes, or bytes a second: "usecond", "Mbyte/s"."""
    top, _, bottom = unit.strip().partition("/")
    factor = _SECONDS.get(top, 1.0)
    if top.endswith("byte"):
        factor = _PREFIXES.get(top.removesuffix("byte"), 1.0)
    return factor / _SECONDS.get(bottom, 1.0)


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
