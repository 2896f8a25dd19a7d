"""A CheckReport for people: kernels, what is wrong, and what it was checked with."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from judge.check_report import FAILURES, CheckReport, CheckVerdict, KernelReport
from judge.text import plain
from judge.verdict import Rules

_VERDICT_STYLES = {"ok": "bold green", "warnings": "bold yellow", "failed": "bold red"}
_BROKEN = {
    Rules.NO_TILELANG: ": no TileLang kernel",
    Rules.FORBIDDEN_IMPORT: ": a forbidden import",
}
_UNITS = ("wgmma", "tma", "mbarrier")
_SHOWN_CASES = 3


def print_check(report: CheckReport, console: Console) -> None:
    """Print one block a kernel, then problems, then the summary.

    Everything that a submission could have written goes in as plain text, never as markup.
    """
    console.print(
        Text.assemble(
            "Check for ",
            (report.profile.name, "bold"),
            ": ",
            (plain(report.submission.name, 60), "bold"),
        )
    )
    console.print()
    for kernel in report.kernels:
        console.print(_kernel(kernel, report))
        console.print()
    problems = _problems(report)
    if problems:
        console.print(_pairs(problems))
        console.print()
    console.print(_pairs(_summary(report)))


def _kernel(kernel: KernelReport, report: CheckReport) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, show_header=True)
    table.add_column(Text(plain(kernel.symbol, 60), style="bold"), no_wrap=True)
    table.add_column(_verdict(kernel.verdict), overflow="fold")
    for name, value in _kernel_lines(kernel, report):
        table.add_row(name, value)
    return table


def _kernel_lines(kernel: KernelReport, report: CheckReport) -> list[tuple[str, Text]]:
    lines = [("cases", Text(_listed(kernel.cases))), ("grid", Text(_grids(kernel)))]
    fits = kernel.occupancy
    if fits is None:
        return lines
    profile = report.profile
    spills = f", spills {kernel.spill_stores} + {kernel.spill_loads} bytes (stores + loads)"
    shared = kernel.static_shared + kernel.dynamic_shared
    lines += [
        ("threads", Text(f"{kernel.threads} a block, at most {profile.threads_per_block}")),
        (
            "registers",
            Text.assemble(
                f"{kernel.registers} a thread",
                (spills, "yellow") if kernel.spill_stores or kernel.spill_loads else ", no spills",
            ),
        ),
        (
            "shared memory",
            Text(
                f"{kernel.static_shared} static + {kernel.dynamic_shared} dynamic = {shared} of "
                f"{kernel.shared_limit} bytes",
                style="red" if shared > kernel.shared_limit else "",
            ),
        ),
        (
            "CTAs an SM",
            Text(
                f"{fits.ctas}, bound by {fits.binds} (registers {fits.registers}, shared memory "
                f"{fits.shared}, threads {fits.threads})"
            ),
        ),
        ("units", Text(_units(kernel))),
        ("compiled in", Text(f"{kernel.compile_s:.1f} s{', earlier' if kernel.cached else ''}")),
    ]
    return lines


def _units(kernel: KernelReport) -> str:
    if not kernel.code:
        return "not known: neither SASS nor PTX could be read"
    listed = ", ".join(f"{unit} {'yes' if unit in kernel.units else 'no'}" for unit in _UNITS)
    return f"{listed} (from {kernel.code})"


def _grids(kernel: KernelReport) -> str:
    """The smallest and the largest grid, where there are several."""
    uses = sorted(kernel.grids, key=lambda use: use.grid[0] * use.grid[1] * use.grid[2])
    if not uses:
        return "-"
    shown = [" x ".join(map(str, use.grid)) for use in uses]
    if len(shown) == 1:
        return shown[0]
    return f"{shown[0]} ({uses[0].cases[0]}) to {shown[-1]} ({uses[-1].cases[0]})"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN_CASES
    return ", ".join(names[:_SHOWN_CASES]) + (f" and {more} more" if more > 0 else "")


def _problems(report: CheckReport) -> list[tuple[str, Text]]:
    """What went wrong, once where it is the same for many cases; then warnings by kernel."""
    cases: dict[tuple[CheckVerdict, str], list[str]] = {}
    for case in report.cases:
        if case.verdict is not CheckVerdict.OK:
            cases.setdefault((case.verdict, plain(case.detail, 600)), []).append(case.case.name)
        if case.unchecked:
            key = (CheckVerdict.NOT_CHECKED, plain(", ".join(case.unchecked)))
            cases.setdefault(key, []).append(case.case.name)
    lines = [
        (_listed(names), Text.assemble(_verdict(verdict), f": {detail}"))
        for (verdict, detail), names in cases.items()
    ]
    warnings: dict[str, list[str]] = {}
    for kernel in report.kernels:
        for warning in kernel.warnings:
            warnings.setdefault(warning, []).append(kernel.symbol)
    lines += [
        (_listed(list(dict.fromkeys(symbols))), Text(f"warning: {plain(text)}", style="yellow"))
        for text, symbols in warnings.items()
    ]
    return lines


def _summary(report: CheckReport) -> list[tuple[str, Text]]:
    submission = report.submission
    failed = sum(case.verdict in FAILURES for case in report.cases)
    unknown = sum(case.verdict is CheckVerdict.NOT_CHECKED for case in report.cases)
    fine = len(report.cases) - failed - unknown
    counts = f"{fine} of {len(report.cases)} cases fine" + (
        f", {unknown} not checked" if unknown else ""
    )
    rules = submission.rules
    versions = f"judge {report.judge_version}, TileLang {report.tilelang or 'not installed'}"
    return [
        (
            "Verdict",
            Text.assemble(
                (report.verdict, _VERDICT_STYLES.get(report.verdict, "")),
                f"{_BROKEN.get(rules, '')}  {counts}"
                + ("; interrupted" if report.interrupted else ""),
            ),
        ),
        ("Results", Text(_results(report))),
        (
            "Rules",
            Text("ok", style="green")
            if rules is Rules.OK
            else Text.assemble((rules.value, "bold red"), f"  {plain(submission.rules_detail)}"),
        ),
        ("Kernels", Text(f"{len(report.kernels)} for {plain(report.target)}")),
        ("Cache", Text(plain(report.cache, 1000))),
        (
            "Versions",
            Text(plain(f"{versions}, nvcc {report.nvcc or 'not found'}, torch {report.torch}")),
        ),
        ("Log", Text(plain(submission.log, 1000))),
        ("Time", Text(f"{report.seconds:.1f} s")),
    ]


def _results(report: CheckReport) -> str:
    """What the dry calls returned, of the first case that returned something."""
    for case in report.cases:
        if case.outputs:
            forms = ", ".join(f"{form.dtype} {form.shape}" for form in case.outputs)
            return f"{forms} ({case.case.name})"
    return "none"


def _verdict(verdict: CheckVerdict) -> Text:
    style = {CheckVerdict.OK: "green", CheckVerdict.NOT_CHECKED: "yellow"}.get(verdict, "bold red")
    return Text(verdict.value, style=style)


def _pairs(pairs: Sequence[tuple[str, Text]]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="bold", overflow="ellipsis", max_width=40)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(Text(plain(name, 80)), value)
    return grid
