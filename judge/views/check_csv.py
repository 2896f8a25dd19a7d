"""A CheckReport as CSV: one row a kernel, or one a failed case that has none."""

from __future__ import annotations

import csv
import io

from judge.check_report import FAILURES, CheckedCase, CheckReport, KernelReport
from judge.text import csv_cell

COLUMNS = (
    "submission",
    "verdict",
    "rules",
    "kernel",
    "result",
    "detail",
    "grid",
    "threads",
    "registers",
    "spill_store_bytes",
    "spill_load_bytes",
    "static_shared_bytes",
    "dynamic_shared_bytes",
    "shared_limit_bytes",
    "ctas_by_registers",
    "ctas_by_shared",
    "ctas_by_threads",
    "ctas_per_sm",
    "binds",
    "wgmma",
    "tma",
    "mbarrier",
    "code",
    "compile_s",
    "cached",
    "cases",
    "warnings",
    "profile",
    "tilelang",
    "judge",
    "created",
)


def check_csv(report: CheckReport) -> str:
    """Kernels in the order in which cases launch them; several grids or cases joined by spaces.

    A case that failed and launched nothing has a row with an empty kernel. Empty where unknown.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    common = {
        "submission": csv_cell(report.submission.name),
        "verdict": report.verdict,
        "rules": report.submission.rules.value,
        "profile": report.profile.name,
        "tilelang": report.tilelang or "",
        "judge": report.judge_version,
        "created": report.created,
    }
    for kernel in report.kernels:
        writer.writerow(common | _kernel_row(kernel))
    for case in report.cases:
        if case.verdict in FAILURES and not case.kernels:
            writer.writerow(common | _case_row(case))
    return text.getvalue()


def _kernel_row(kernel: KernelReport) -> dict[str, str | int | float]:
    row: dict[str, str | int | float] = {
        "kernel": csv_cell(kernel.symbol),
        "result": kernel.verdict.value,
        "detail": csv_cell(kernel.detail),
        "grid": " ".join("x".join(map(str, use.grid)) for use in kernel.grids),
        "cases": " ".join(kernel.cases),
        "warnings": csv_cell("; ".join(kernel.warnings)),
        "shared_limit_bytes": kernel.shared_limit,
    }
    if kernel.occupancy is None:
        return row
    row |= {
        "threads": kernel.threads,
        "registers": kernel.registers,
        "spill_store_bytes": kernel.spill_stores,
        "spill_load_bytes": kernel.spill_loads,
        "static_shared_bytes": kernel.static_shared,
        "dynamic_shared_bytes": kernel.dynamic_shared,
        "ctas_by_registers": kernel.occupancy.registers,
        "ctas_by_shared": kernel.occupancy.shared,
        "ctas_by_threads": kernel.occupancy.threads,
        "ctas_per_sm": kernel.occupancy.ctas,
        "binds": kernel.occupancy.binds,
        "code": kernel.code,
        "compile_s": kernel.compile_s,
        "cached": str(kernel.cached).lower(),
    }
    if kernel.code:
        for unit in ("wgmma", "tma", "mbarrier"):
            row[unit] = str(unit in kernel.units).lower()
    return row


def _case_row(case: CheckedCase) -> dict[str, str]:
    return {
        "result": case.verdict.value,
        "detail": csv_cell(case.detail),
        "cases": case.case.name,
    }
