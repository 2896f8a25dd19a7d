"""`run.py profile`: options and wiring."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
import torch
from rich.console import Console

from judge.caches import CompileError, compile_judge_kernels, log_folder
from judge.case import Case
from judge.child.log import ChildLog
from judge.child.process import ChildOptions, default_memory_limit
from judge.commands.run_options import CASES, INTERRUPTED, WrongUsage, say, usage_errors
from judge.device import child_view, choose_device, gpu_identity
from judge.environment import capture
from judge.gpu_lock import gpu_lock
from judge.profiling.commands import TOOLS, ProfilerError, Target, choose_tool
from judge.profiling.external import run_ncu, run_nsys
from judge.profiling.picture import HOW_TO_GET, can_draw, draw_stalls
from judge.profiling.report import ProfileReport, TimeRow, to_json
from judge.profiling.torch_profiler import run_torch
from judge.profiling.view import print_report, to_csv
from judge.progress import TerminalProgress
from judge.record import CaseResult
from judge.sandbox.kinds import MODES, SANDBOX_HELP, Sandbox, choose_sandbox
from judge.submission import Submission, find_submission
from judge.suites import load_suites, select_cases
from judge.threads import available_cores
from judge.verdict import Verdict
from judge.views.printing import print_for_people


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--case", "case_name", required=True, metavar="NAME", help="The case to look into.")
@click.option(
    "--tool",
    type=click.Choice(TOOLS),
    help="Default: ncu where it is on PATH, else nsys, else torch; on a CPU torch.",
)
@click.option(
    "--launches",
    type=click.IntRange(min=1),
    default=2,
    help="Kernel launches (ncu) or calls (nsys, torch) to profile. Default: 2.",
)
@click.option(
    "--kernel",
    metavar="REGEX",
    help="With ncu alone: only kernels whose name matches.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("profiles"),
    metavar="DIR",
    help="Folder for reports, CSV and pictures. Default: profiles.",
)
@click.option(
    "--output-format",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    help="What goes to standard output. Default: table.",
)
@click.option(
    "--cases",
    "cases_file",
    type=click.Path(path_type=Path),
    help="A suite file to use in place of the ones in cases/.",
)
@click.option("--device", default="auto", metavar="auto|cuda|cuda:N|cpu", help="Default: auto.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=42, help="Default: 42.")
@click.option("--sandbox", type=click.Choice(MODES), default="auto", help=SANDBOX_HELP)
@click.pass_context
def profile(
    context: click.Context,
    path: Path,
    case_name: str,
    tool: str | None,
    launches: int,
    kernel: str | None,
    output: Path,
    output_format: str,
    cases_file: Path | None,
    device: str,
    seed: int,
    sandbox: str,
) -> None:
    """Look inside a submission on one case: Nsight Compute, Nsight Systems or PyTorch's profiler.

    PATH is a submission: a .py file or a folder. Only the timed calls are profiled, in the child
    that runs the submission; docs/profiling.md says how to read the figures. Exit status: 0 the
    case passed and was profiled, 1 something failed, 2 wrong usage or a profiler that is missing,
    130 interrupted.
    """
    with _usage_errors():
        suite, case = _chosen_case(cases_file, case_name)
        submission = find_submission(path)
        torch_device = choose_device(device)
        chosen = choose_tool(tool, torch_device.type == "cuda")
        if kernel is not None and chosen != "ncu":
            raise WrongUsage(f"--kernel: {chosen} takes every kernel; leave it out, or use ncu")
        contained = choose_sandbox(sandbox, followed_by_profiler=chosen != "torch")
        _make_folder(output)
    if tool is None:
        say(f"profiling with {chosen}")
    if contained.note:
        say(contained.note)
    stem = output / re.sub(r"[^\w-]", "_", f"{submission.name}-{case.name}-{chosen}")
    report = ProfileReport(chosen, submission.name, case.name, "", launches)
    try:
        if chosen == "torch":
            result, report = _with_torch(
                submission, suite, case, torch_device, seed, contained, report
            )
        else:
            target = Target(path, case.name, cases_file, device, seed, launches)
            result, report = _with_command(target, kernel, stem, report)
            report = replace(report, notes=[*report.notes, contained.note])
        if result.verdict is not Verdict.PASS:
            say(f"{case.name}: {result.verdict}: {result.detail}")
            context.exit(1)
        report = _with_files(report, stem)
    except (ProfilerError, CompileError, OSError) as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    _show(report, output_format, contained.note)


def _make_folder(output: Path) -> None:
    problem = ""
    try:
        output.mkdir(parents=True, exist_ok=True)
        if not os.access(output, os.W_OK | os.X_OK, effective_ids=True):
            problem = os.strerror(errno.EACCES)
    except OSError as error:
        problem = error.strerror
    if problem:
        raise WrongUsage(f"{output}: {problem}; name another folder (--output)")


def _with_command(
    target: Target, kernel: str | None, stem: Path, report: ProfileReport
) -> tuple[CaseResult, ProfileReport]:
    if report.tool == "ncu":
        record, launches = run_ncu(target, report.calls, kernel, stem, say)
        report = replace(report, launches=launches, notes=_ncu_notes(report.calls, launches))
    else:
        record, times = run_nsys(target, stem, say)
        timing = record.results[0].timing
        calls = len(timing.samples_ms) if timing else 1  # a case that is not timed: one
        report = replace(report, times=times, calls=calls)
    return record.results[0], replace(report, device=record.environment.device_name)


def _with_torch(
    submission: Submission,
    suite: str,
    case: Case,
    device: torch.device,
    seed: int,
    sandbox: Sandbox,
    report: ProfileReport,
) -> tuple[CaseResult, ProfileReport]:
    threads = available_cores()
    torch.set_num_threads(threads)
    progress = TerminalProgress(Console(stderr=True))
    child_device, visible_devices = child_view(device)
    on_cuda = device.type == "cuda"
    log = ChildLog(log_folder() / f"profile-{os.getpid()}.log")
    try:
        with gpu_lock(gpu_identity(device), say) if on_cuda else nullcontext():
            kernels: dict[str, bytes] = {}
            if on_cuda:
                progress.message("compiling the judge's own kernels")
                kernels = compile_judge_kernels()
            result, times = run_torch(
                submission,
                suite,
                case,
                device=device,
                child=ChildOptions(
                    *(child_device, visible_devices, threads, default_memory_limit(), kernels),
                    sandbox=sandbox,
                    gpu=gpu_identity(device) if on_cuda else "",
                ),
                seed=seed,
                calls=report.calls,
                log=log,
                progress=progress.message,
            )
    finally:
        progress.close()
        log.close()
    name = capture(device).device_name
    notes = [*_torch_notes(on_cuda, times), *([sandbox.note] if sandbox.note else [])]
    return result, replace(report, device=name, times=times, notes=notes)


def _with_files(report: ProfileReport, stem: Path) -> ProfileReport:
    """Write the picture and the report's own CSV and JSON; the report with all files' names."""
    notes, pictures = list(report.notes), []
    if report.launches and not can_draw():
        notes.append(HOW_TO_GET)
    elif report.launches:
        title = f"Where the warps' cycles go: {report.submission} on {report.case}, {report.device}"
        pictures = draw_stalls(report.launches, title, stem.with_name(f"{stem.name}-stalls"))
    figures = stem.with_name(f"{stem.name}-figures.csv")
    record = stem.with_name(f"{stem.name}.json")
    raw = [stem.with_name(stem.name + suffix) for suffix in (".ncu-rep", ".nsys-rep", ".csv")]
    files = [*(file for file in raw if file.is_file()), figures, record, *pictures]
    report = replace(report, notes=notes, files=[str(file) for file in files])
    figures.write_text(to_csv(report))
    record.write_text(to_json(report) + "\n")
    return report


def _ncu_notes(asked: int, launches: list) -> list[str]:
    notes = []
    if len(launches) < asked:
        notes.append(f"{len(launches)} of {asked} launches asked for: the timed calls made no more")
    missing = sorted({name for launch in launches for name in launch.missing})
    if missing:
        notes.append(f"not collected by this ncu on this GPU: {', '.join(missing)}")
    return notes


def _torch_notes(on_cuda: bool, times: list[TimeRow]) -> list[str]:
    if on_cuda and times and all(row.kind == "cpu" for row in times):
        return ["PyTorch's profiler saw no kernel: CUPTI may be in use or not permitted here"]
    return []


def _show(report: ProfileReport, output_format: str, said: str) -> None:
    """said: the note that was on standard error before the run."""
    if output_format == "table":
        print_for_people(partial(print_report, report))
        return
    click.echo(to_json(report) if output_format == "json" else to_csv(report).rstrip("\n"))
    for note in report.notes:
        if note != said:
            say(note)


def _chosen_case(cases_file: Path | None, name: str) -> tuple[str, Case]:
    suites = load_suites([cases_file] if cases_file else sorted(CASES.glob("*.yaml")))
    ((suite, case),) = select_cases(suites, case_names=[name])
    return suite.name, case


@contextmanager
def _usage_errors() -> Iterator[None]:
    with usage_errors():
        try:
            yield
        except ProfilerError as error:
            raise WrongUsage(str(error)) from None
