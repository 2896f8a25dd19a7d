"""Judging a compiled kernel by the device's limits."""

from __future__ import annotations

from dataclasses import dataclass

from judge.case import Case
from judge.check_report import CheckVerdict, GridUse, KernelReport
from judge.child.protocol import Compiled, KernelFigures
from judge.occupancy import WARP, Occupancy, occupancy
from judge.profiles import DeviceProfile
from judge.text import plain

_MAX_GRID = (2**31 - 1, 65535, 65535)


@dataclass
class Launched:
    """A TileLang kernel that dry calls launched.

    case: the first that did. grids: of every launch, by case: blocks in x, y and z of each CUDA
    kernel that it consists of.
    """

    name: str
    case: Case
    grids: list[tuple[str, list[list[int]]]]


def kernel_reports(
    key: str, launched: Launched, done: Compiled, profile: DeviceProfile
) -> list[KernelReport]:
    """A report of each CUDA kernel of a compiled TileLang kernel."""
    return [
        _report(key, _grid_uses(launched, index), figures, done, profile)
        for index, figures in enumerate(done.figures)
    ]


def failed_kernel(
    key: str, launched: Launched, profile: DeviceProfile, verdict: CheckVerdict, detail: str
) -> KernelReport:
    """The report of a kernel of which there are no figures."""
    return KernelReport(
        kernel=key,
        symbol=plain(launched.name, 100),
        threads=0,
        registers=0,
        stack=0,
        spill_stores=0,
        spill_loads=0,
        static_shared=0,
        dynamic_shared=0,
        shared_limit=profile.shared_per_block,
        occupancy=None,
        units=[],
        code="",
        grids=_grid_uses(launched, 0),
        compile_s=0.0,
        cached=False,
        verdict=verdict,
        detail=plain(detail, 600),
        warnings=[],
    )


def _report(
    key: str,
    grids: list[GridUse],
    figures: KernelFigures,
    done: Compiled,
    profile: DeviceProfile,
) -> KernelReport:
    shared = figures.static_shared + figures.dynamic_shared
    fits = occupancy(figures.threads, figures.registers, shared, profile)
    problem = _cannot_launch(figures, shared, fits, grids, profile)
    return KernelReport(
        kernel=key,
        symbol=plain(figures.symbol, 100),
        threads=figures.threads,
        registers=figures.registers,
        stack=figures.stack,
        spill_stores=figures.spill_stores,
        spill_loads=figures.spill_loads,
        static_shared=figures.static_shared,
        dynamic_shared=figures.dynamic_shared,
        shared_limit=profile.shared_per_block,
        occupancy=fits,
        units=[plain(unit) for unit in figures.units],
        code=plain(figures.code),
        grids=grids,
        compile_s=done.seconds,
        cached=done.cached,
        verdict=CheckVerdict.CANNOT_LAUNCH if problem else CheckVerdict.OK,
        detail=problem,
        warnings=_warnings(figures),
    )


def _cannot_launch(
    figures: KernelFigures,
    shared: int,
    fits: Occupancy,
    grids: list[GridUse],
    profile: DeviceProfile,
) -> str:
    """Why the device refuses the kernel; empty where it does not."""
    if shared > profile.shared_per_block:
        return (
            f"needs {shared} bytes of shared memory a block ({shared / 1024:.1f} KB), "
            f"{profile.name} has {profile.shared_per_block} ({profile.shared_per_block >> 10} KB)"
        )
    if figures.threads > profile.threads_per_block:
        return (
            f"has {figures.threads} threads a block, {profile.name} allows at most "
            f"{profile.threads_per_block}"
        )
    if fits.registers == 0:
        return (
            f"needs {figures.registers} registers a thread x {figures.threads} threads, "
            f"an SM of {profile.name} has {profile.registers_per_sm}"
        )
    for use in grids:
        for axis, blocks, limit in zip("xyz", use.grid, _MAX_GRID, strict=True):
            if not 0 < blocks <= limit:
                return f"{use.cases[0]}: {blocks} blocks in {axis}, allowed are 1 to {limit}"
    return ""


def _warnings(figures: KernelFigures) -> list[str]:
    found = [plain(remark) for remark in figures.remarks]
    if figures.spill_stores or figures.spill_loads:
        found.insert(
            0,
            f"spills registers: {figures.spill_stores} bytes of stores, {figures.spill_loads} "
            f"bytes of loads a thread, at {figures.registers} registers and {figures.threads} "
            f"threads ({-(-figures.threads // WARP)} warps)",
        )
    return found


def _grid_uses(launched: Launched, index: int) -> list[GridUse]:
    uses: dict[tuple[int, ...], list[str]] = {}
    for case, grids in launched.grids:
        if index < len(grids):
            cases = uses.setdefault(tuple(grids[index]), [])
            if case not in cases:
                cases.append(case)
    return [GridUse(list(grid), cases) for grid, cases in uses.items()]
