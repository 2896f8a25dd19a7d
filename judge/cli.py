"""The command line: options and wiring."""

from __future__ import annotations

import math
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import click
import torch
from rich.console import Console

from judge import __version__
from judge.baseline import choose
from judge.caches import (
    CacheError,
    CompileError,
    check_cache_root,
    checkpoint_folder,
    compile_judge_kernels,
)
from judge.case import Case, Suite
from judge.checkpoints import BaselineError, load_checkpoints
from judge.child.process import ChildOptions, default_memory_limit, followed_by_profiler
from judge.commands.calibrate import calibrate
from judge.commands.check import check_command
from judge.commands.profile import profile
from judge.device import DeviceError, child_view, choose_device, gpu_identity
from judge.environment import capture
from judge.gpu_lock import LockError, gpu_lock
from judge.grading import Plan, grade
from judge.implementations import missing_packages, public_implementations, versions_of
from judge.progress import TerminalProgress
from judge.record import Record, to_json
from judge.repetitions import Repetitions
from judge.sandbox.kinds import MODES, SANDBOX_HELP, SandboxError, choose_sandbox
from judge.slices import SLICES, choose_slice, predict
from judge.sm_budget import SMS_HELP, BudgetError, check_budget
from judge.submission import SubmissionError, find_submission
from judge.suites import CaseFileError, load_suites, select_cases
from judge.text import plain
from judge.threads import available_cores
from judge.trial import Limits
from judge.verdict import Verdict
from judge.views.benchmarks import benchmark_csv, print_benchmarks, print_prediction
from judge.views.csv_rows import full_csv, lab_csv
from judge.views.table import print_table

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "cases"
STARTER = ROOT / "submissions" / "starter"
DEFAULT_SUITE = "public"
DEFAULT_COUNT = {"cuda": Repetitions(10, 100), "cpu": Repetitions(1, 3)}
INTERRUPTED = 130
MAX_CALLS = 100_000
MAX_TIMEOUT_S = 86_400.0


def _finite(context: click.Context, option: click.Parameter, value: float) -> float:
    if not math.isfinite(value):  # click's range lets nan through
        raise click.BadParameter(f"{value} is no number of seconds")
    return value


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gdn-judge")
@click.option("--case", "case_names", multiple=True, metavar="NAME", help="A case; repeatable.")
@click.option(
    "--suite",
    "suite_names",
    multiple=True,
    metavar="NAME",
    help="All cases of a suite: public (the default), hidden, correctness, smoke; repeatable.",
)
@click.option(
    "--cases",
    "cases_file",
    type=click.Path(path_type=Path),
    help="A suite file to use in place of the ones in cases/.",
)
@click.option(
    "--submission", type=click.Path(path_type=Path), default=STARTER, help="Default: the starter."
)
@click.option(
    "--warmup", type=click.IntRange(0, MAX_CALLS), help="Warm-up calls: 10 on CUDA, 1 on a CPU."
)
@click.option(
    "--repetitions", type=click.IntRange(1, MAX_CALLS), help="Timed calls: 100 on CUDA, 3 on a CPU."
)
@click.option(
    "--output-format",
    type=click.Choice(["table", "csv", "csv-full", "json"]),
    default="table",
    help="csv is the lab's own three columns. Default: table.",
)
@click.option("--device", default="auto", metavar="auto|cuda|cuda:N|cpu", help="Default: auto.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=42, help="Default: 42.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1, max=MAX_TIMEOUT_S),
    default=Limits.run,
    callback=_finite,
    metavar="SECONDS",
    help="Limit for the timed run of a case; compiling and importing have their own. Default: 300.",
)
@click.option(
    "--baseline",
    default="auto",
    metavar="auto|checkpoints|live|reference|none|FILE",
    help="Where t100 and t60 come from. Default: checkpoints that fit this device, else live, else "
    "reference.",
)
@click.option(
    "--reference-benchmarks",
    "benchmarks",
    is_flag=True,
    help="Also time the public implementations that are installed, whole forward, in turns.",
)
@click.option(
    "--protocol",
    type=click.Choice(["strict", "lab"]),
    help="strict: new inputs at every call, audits, the judge's own clock beside the child's. lab: "
    "the lab's plain loop. Default: strict, lab under a profiler.",
)
@click.option("--sms", type=click.IntRange(min=1), metavar="N", help=SMS_HELP)
@click.option(
    "--slice",
    "slice_name",
    type=click.Choice(list(SLICES)),
    help="Predict what a slice would show: its number of SMs, times its clock factor.",
)
@click.option("--sandbox", type=click.Choice(MODES), default="auto", help=SANDBOX_HELP)
@click.option("--no-gate", is_flag=True, help="Practice: failed correctness cases cost nothing.")
@click.pass_context
def main(
    context: click.Context,
    case_names: tuple[str, ...],
    suite_names: tuple[str, ...],
    cases_file: Path | None,
    submission: Path,
    warmup: int | None,
    repetitions: int | None,
    output_format: str,
    device: str,
    seed: int,
    timeout: float,
    baseline: str,
    benchmarks: bool,
    protocol: str | None,
    sms: int | None,
    slice_name: str | None,
    sandbox: str,
    no_gate: bool,
) -> None:
    """Grade a Gated DeltaNet prefill submission: is it right, how fast is it, what does it score.

    Data goes to standard output, everything else to standard error. Exit status: 0 all cases
    passed, 1 something failed, 2 wrong usage, 130 interrupted.
    """
    if context.invoked_subcommand is not None:
        return
    errors = Console(stderr=True)
    with _usage_errors():
        suites, cases = _chosen_cases(cases_file, suite_names, case_names)
        found = find_submission(submission)
        torch_device = choose_device(device)
        environment = capture(torch_device)
        chosen_slice = None
        if slice_name is not None:
            chosen_slice = choose_slice(slice_name, environment.device_name)
            sms = chosen_slice.sms
        if sms is not None:
            check_budget(torch_device, sms)
            environment = replace(environment, sms=sms, sms_of=environment.sms)
        check_cache_root()
        contained = choose_sandbox(sandbox, followed_by_profiler())
        public = public_implementations() if torch_device.type == "cuda" else []
        choice = choose(
            baseline,
            [case for _, case in cases],
            environment,
            [CASES / "checkpoints", checkpoint_folder()],
            versions_of(public),
        )
    if contained.note:
        _say(contained.note)
    if benchmarks and (missing := missing_packages()):
        _say(f"not installed, so not timed: {', '.join(missing)}")
    count = DEFAULT_COUNT[torch_device.type]
    child_device, visible_devices = child_view(torch_device)
    plan = Plan(
        submission=found,
        suites=suites,
        cases=cases,
        device=torch_device,
        environment=environment,
        child=ChildOptions(
            device=child_device,
            visible_devices=visible_devices,
            threads=available_cores(),
            memory_limit=default_memory_limit(),
            sandbox=contained,
            gpu=gpu_identity(torch_device) if torch_device.type == "cuda" else "",
            sms=sms,
        ),
        seed=seed,
        count=Repetitions(
            count.warmup if warmup is None else warmup,
            count.repetitions if repetitions is None else repetitions,
        ),
        limits=Limits(run=timeout),
        choice=choice,
        gate=not no_gate,
        strict=(protocol or ("lab" if followed_by_profiler() else "strict")) == "strict",
        public=public,
        benchmarks=benchmarks,
    )
    record = _run(plan, errors)
    if chosen_slice is not None:
        file = load_checkpoints(CASES / "checkpoints" / chosen_slice.checkpoints)
        record.prediction = predict(chosen_slice, file, record.results, record.rivals)
    try:
        _show(record, output_format, benchmarks=benchmarks)
        sys.stdout.flush()
    except BrokenPipeError:  # click ends quietly where the reader has seen enough
        raise
    except OSError as error:
        raise click.ClickException(f"standard output: {error.strerror}") from None
    context.exit(_exit_status(record))


main.add_command(profile)
main.add_command(check_command)
main.add_command(calibrate)


def _run(plan: Plan, errors: Console) -> Record:
    torch.set_num_threads(plan.child.threads)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    progress = TerminalProgress(errors)
    on_cuda = plan.device.type == "cuda"
    lock = gpu_lock(gpu_identity(plan.device), _say) if on_cuda else nullcontext()
    try:
        with lock:
            if on_cuda:
                progress.message("compiling the judge's own kernels")
                child = replace(plan.child, judge_kernels=compile_judge_kernels())
                plan = replace(plan, child=child)
            return grade(plan, progress)
    except CompileError as error:
        raise click.ClickException(f"the judge's own kernels do not compile: {error}") from None
    except LockError as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        progress.close()


def _chosen_cases(
    cases_file: Path | None, suite_names: Sequence[str], case_names: Sequence[str]
) -> tuple[list[Suite], list[tuple[str, Case]]]:
    files = [cases_file] if cases_file else sorted(_shown_path(CASES).glob("*.yaml"))
    suites = load_suites(files)
    if not (cases_file or suite_names or case_names):
        suite_names = [DEFAULT_SUITE]
    chosen = select_cases(suites, suite_names, case_names)
    taking_part = [suite for suite in suites if any(suite is of for of, _ in chosen)]
    return taking_part, [(suite.name, case) for suite, case in chosen]


def _show(record: Record, output_format: str, *, benchmarks: bool) -> None:
    if output_format == "table":
        print_table(record, Console())
        if record.prediction is not None:
            print_prediction(record.prediction, Console())
        if benchmarks:
            print_benchmarks(record, Console())
    elif output_format == "json":
        click.echo(to_json(record))
    elif output_format == "csv-full":
        click.echo(full_csv(record), nl=False)
    else:
        click.echo(benchmark_csv(record) if benchmarks else lab_csv(record), nl=False)
    if record.interrupted:
        _say(f"interrupted: {len(record.results)} finished cases are reported")
    if output_format in ("csv", "csv-full"):
        for note in record.notes:
            _say(note)
        if not record.protocol.official:
            _say("timing is not official: host clock of a CPU")
        for result in record.results:
            if result.verdict is not Verdict.PASS:
                _say(f"{result.case.name}: {result.verdict}: {result.detail}")


def _exit_status(record: Record) -> int:
    if record.interrupted:
        return INTERRUPTED
    return 0 if all(result.verdict is Verdict.PASS for result in record.results) else 1


_USAGE_ERRORS = (
    *(CaseFileError, SubmissionError, DeviceError),
    *(BaselineError, BudgetError, CacheError, SandboxError),
)


@contextmanager
def _usage_errors() -> Iterator[None]:
    try:
        yield
    except _USAGE_ERRORS as error:
        raise _WrongUsage(plain(str(error), 1000)) from None


class _WrongUsage(click.ClickException):
    """One line, exit status 2."""

    exit_code = 2


def _shown_path(path: Path) -> Path:
    """Relative to the working folder where it lies below, as a reader would name it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _say(text: str) -> None:
    click.echo(text, err=True)
