"""What every command that grades shares: options, the plan they make, and the machine's part."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import torch

from judge.baseline import choose
from judge.bench import Plan
from judge.caches import (
    CacheError,
    CompileError,
    check_cache_root,
    checkpoint_folder,
    compile_judge_kernels,
)
from judge.case import Case, Suite
from judge.checkpoints import BaselineError
from judge.child.process import ChildOptions, default_memory_limit
from judge.child.variables import followed_by_profiler
from judge.commands.usage import LIGHT_ERRORS
from judge.commands.usage import WrongUsage as WrongUsage
from judge.commands.usage import say as say
from judge.device import DeviceError, child_view, gpu_identity
from judge.engines.cluster_file import ClusterError
from judge.gpu_lock import LockError, gpu_lock
from judge.host import CHECKPOINTS, Host, Wish, look, predicted_slice
from judge.implementations import versions_of
from judge.repetitions import Repetitions
from judge.sandbox.kinds import MODES, SANDBOX_HELP, SandboxError
from judge.slices import SLICES
from judge.sm_budget import SMS_HELP, BudgetError
from judge.submission import Submission, SubmissionError
from judge.suites import load_suites, select_cases
from judge.text import plain
from judge.threads import available_cores
from judge.trial import Limits
from judge.yamlfile import CaseFileError

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "cases"
DEFAULT_COUNT = {"cuda": Repetitions(10, 100), "cpu": Repetitions(0, 3)}
INTERRUPTED = 130
MAX_CALLS = 100_000
MAX_TIMEOUT_S = 86_400.0

_USAGE_ERRORS = (
    *(*LIGHT_ERRORS, CaseFileError, SubmissionError, DeviceError, BaselineError, CacheError),
    *(SandboxError, BudgetError, ClusterError),
)


def _finite(context: click.Context, option: click.Parameter, value: float) -> float:
    if not math.isfinite(value):  # click's range lets nan through
        raise click.BadParameter(f"{value} is no number of seconds")
    return value


_OPTIONS = (
    click.option(
        "--warmup", type=click.IntRange(0, MAX_CALLS), help="Warm-up calls: 10 on CUDA, 0 on a CPU."
    ),
    click.option(
        "--repetitions",
        type=click.IntRange(1, MAX_CALLS),
        help="Timed calls: 100 on CUDA, 3 on a CPU.",
    ),
    click.option("--device", default="auto", metavar="auto|cuda|cuda:N|cpu", help="Default: auto."),
    click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=42, help="Default: 42."),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0.1, max=MAX_TIMEOUT_S),
        default=Limits.run,
        callback=_finite,
        metavar="SECONDS",
        help="Limit for the timed run of a case; compiling and importing have their own, and so "
        "have all cases together. Default: 300.",
    ),
    click.option(
        "--baseline",
        default="auto",
        metavar="auto|checkpoints|live|reference|none|FILE",
        help="Where t100 and t60 come from. Default: checkpoints that fit this device, else "
        "live, else reference.",
    ),
    click.option(
        "--protocol",
        type=click.Choice(["strict", "lab"]),
        help="lab: the lab's plain loop. strict: before it, new inputs at every call, audits, and "
        "the judge's own clock. Default: strict, lab under a profiler.",
    ),
    click.option("--sms", type=click.IntRange(min=1), metavar="N", help=SMS_HELP),
    click.option(
        "--slice",
        "slice_name",
        type=click.Choice(list(SLICES)),
        help="Predict what a slice would show: its number of SMs, times its clock factor.",
    ),
    click.option("--sandbox", type=click.Choice(MODES), default="auto", help=SANDBOX_HELP),
    click.option(
        "--no-gate", is_flag=True, help="Practice: failed correctness cases cost nothing."
    ),
)


@dataclass(frozen=True)
class RunOptions:
    """The values of `run_options`, as click hands them over."""

    warmup: int | None
    repetitions: int | None
    device: str
    seed: int
    timeout: float
    baseline: str
    protocol: str | None
    sms: int | None
    slice_name: str | None
    sandbox: str
    no_gate: bool

    @property
    def wish(self) -> Wish:
        """What they ask of the machine that measures."""
        return Wish(self.device, self.sandbox, self.sms, self.slice_name)


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that decide how cases are run; they arrive as RunOptions(**…)."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def make_plan(
    options: RunOptions,
    submission: Submission,
    suites: Sequence[Suite],
    cases: Sequence[tuple[str, Case]],
    host: Host | None = None,
) -> Plan:
    """The plan that the options make, told where it contains less than it might.

    host: the machine that measures, None for this one. Raises DeviceError, BudgetError, CacheError,
    SandboxError, BaselineError.
    """
    check_cache_root()
    host = host or look(options.wish)
    device = torch.device(host.device)
    predicted = predicted_slice(options.slice_name, host.environment.device_name)
    choice = choose(
        options.baseline,
        [case for _, case in cases],
        host.environment,
        [CHECKPOINTS, checkpoint_folder()],
        versions_of(host.public),
    )
    if host.sandbox.note:
        say(host.sandbox.note)
    count = DEFAULT_COUNT[device.type]
    child_device, visible_devices = child_view(device)
    protocol = options.protocol or ("lab" if followed_by_profiler() else "strict")
    return Plan(
        submission=submission,
        suites=suites,
        cases=cases,
        device=device,
        environment=host.environment,
        child=ChildOptions(
            device=child_device,
            visible_devices=visible_devices,
            threads=available_cores(),
            memory_limit=default_memory_limit(),
            sandbox=host.sandbox,
            gpu=host.gpu,
            sms=predicted[0].sms if predicted else options.sms,
        ),
        seed=options.seed,
        count=Repetitions(
            count.warmup if options.warmup is None else options.warmup,
            count.repetitions if options.repetitions is None else options.repetitions,
        ),
        limits=Limits(run=options.timeout),
        choice=choice,
        gate=not options.no_gate,
        strict=protocol == "strict",
        public=host.public,
        predicted=predicted,
    )


@contextmanager
def machine(plan: Plan, message: Callable[[str], None], *, hold: bool = True) -> Iterator[Plan]:
    """Hold the device and have the judge's kernels; the plan with them in it.

    message: told what takes long. hold: False where lanes hold their devices themselves. Ends with
    one line, status 1, where either cannot be had.
    """
    torch.set_num_threads(plan.child.threads)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    on_cuda = plan.device.type == "cuda"
    lock = gpu_lock(gpu_identity(plan.device), say) if on_cuda and hold else nullcontext()
    try:
        with lock:
            if on_cuda:
                message("compiling the judge's own kernels")
                child = replace(plan.child, judge_kernels=compile_judge_kernels())
                plan = replace(plan, child=child)
            yield plan
    except CompileError as error:
        raise click.ClickException(f"the judge's own kernels do not compile: {error}") from None
    except LockError as error:
        raise click.ClickException(str(error)) from None


def choose_cases(
    files: Sequence[Path],
    suite_names: Sequence[str],
    case_names: Sequence[str],
    default: Sequence[str],
) -> tuple[list[Suite], list[tuple[str, Case]]]:
    """Suites that take part, and the cases asked for; `default` names suites where none is asked.

    Raises CaseFileError.
    """
    suites = load_suites(files)
    if not (suite_names or case_names):
        suite_names = default
    chosen = select_cases(suites, suite_names, case_names)
    taking_part = [suite for suite in suites if any(suite is of for of, _ in chosen)]
    return taking_part, [(suite.name, case) for suite, case in chosen]


def case_files() -> list[Path]:
    """The suite files of this judge."""
    return sorted(shown_path(CASES).glob("*.yaml"))


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn what only the caller can change into one line and exit status 2."""
    try:
        yield
    except _USAGE_ERRORS as error:
        raise WrongUsage(plain(str(error), 1000)) from None


def shown_path(path: Path) -> Path:
    """Relative to the working folder where it lies below, as a reader would name it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
