"""`run.py calibrate`: options and wiring."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click
import torch
from rich.console import Console

from judge.audit import NO_AUDITS, AuditSeeds, answers
from judge.caches import (
    CompileError,
    checkpoint_folder,
    compile_judge_kernels,
    log_folder,
)
from judge.calibration import Calibration, default_name, write_checkpoints
from judge.case import Case
from judge.child.log import ChildLog
from judge.child.process import ChildOptions, default_memory_limit
from judge.commands.run_options import (
    INTERRUPTED,
    case_files,
    choose_cases,
    say,
    usage_errors,
)
from judge.device import DeviceError, child_view, choose_device, gpu_identity
from judge.environment import capture
from judge.gpu_lock import LockError, gpu_lock
from judge.implementations import (
    FULL,
    HOW_TO_GET,
    PACKAGES,
    Implementation,
    public_implementations,
    simple_implementation,
    versions_of,
)
from judge.progress import TerminalProgress
from judge.record import RivalResult
from judge.repetitions import Repetitions
from judge.rivals import Rivals, failures, noisy
from judge.sandbox.kinds import MODES, SANDBOX_HELP, choose_sandbox
from judge.session import Session
from judge.sm_budget import SMS_HELP, check_budget
from judge.suites import CaseFileError
from judge.text import plain
from judge.threads import available_cores
from judge.trial import Limits

DEFAULT_SUITES = ("public", "hidden")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--suite",
    "suite_names",
    multiple=True,
    metavar="NAME",
    help="Suites whose timed cases are calibrated; repeatable. Default: public and hidden.",
)
@click.option(
    "--cases",
    "cases_file",
    type=click.Path(path_type=Path),
    help="A suite file to use in place of the ones in cases/.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The checkpoint file, *.yaml; the samples go beside it. Default: one in the judge's "
    "cache, which later runs on this device use by themselves.",
)
@click.option("--device", default="auto", metavar="auto|cuda|cuda:N", help="Default: auto.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=42, help="Default: 42.")
@click.option("--warmup", type=click.IntRange(0, 100_000), default=10, help="Default: 10.")
@click.option("--repetitions", type=click.IntRange(1, 100_000), default=100, help="Default: 100.")
@click.option("--sms", type=click.IntRange(min=1), metavar="N", help=SMS_HELP)
@click.option("--sandbox", type=click.Choice(MODES), default="auto", help=SANDBOX_HELP)
def calibrate(
    suite_names: tuple[str, ...],
    cases_file: Path | None,
    output: Path | None,
    device: str,
    seed: int,
    warmup: int,
    repetitions: int,
    sms: int | None,
    sandbox: str,
) -> None:
    """Time the public implementations on this device and keep t100 and t60 for later runs.

    All that are installed take turns, half of their calls at a time; each is checked for
    correctness first. A case of which t100 or t60 is noisy is timed once more. Exit status: 0 a
    checkpoint file was written, 1 nothing could be timed, 2 wrong usage, 130 interrupted.
    """
    with usage_errors():
        cases = _chosen_cases(cases_file, suite_names)
        torch_device = choose_device(device)
        if torch_device.type != "cuda":
            raise DeviceError("calibrate: public implementations need a CUDA device")
        public = [one for one in public_implementations() if one.scope == FULL]
        if not public:
            raise DeviceError(f"calibrate: install one of {', '.join(PACKAGES)} ({HOW_TO_GET})")
        if sms is not None:
            check_budget(torch_device, sms)
        contained = choose_sandbox(sandbox, followed_by_profiler=False)
    child_device, visible_devices = child_view(torch_device)
    child = ChildOptions(
        device=child_device,
        visible_devices=visible_devices,
        threads=available_cores(),
        memory_limit=default_memory_limit(),
        sandbox=contained,
        gpu=gpu_identity(torch_device),
        sms=sms,
    )
    torch.set_num_threads(child.threads)
    count = Repetitions(warmup, repetitions)
    environment = capture(torch_device)
    if sms is not None:
        environment = replace(environment, sms=sms, sms_of=environment.sms)
    path = output or checkpoint_folder() / f"{default_name(environment)}.yaml"
    try:
        with gpu_lock(child.gpu, say):
            child = replace(child, judge_kernels=compile_judge_kernels())
            results = _time_all(public, cases, torch_device, child, seed, count)
        for line in (*failures(results), *noisy(results)):
            say(line)
        date = datetime.now(UTC).isoformat(timespec="seconds")
        judged = [case for _, case in cases]
        calibration = Calibration(environment, versions_of(public), count, date, judged, results)
        write_checkpoints(calibration, path)
    except (CompileError, LockError, ValueError, OSError) as error:
        raise click.ClickException(plain(str(error), 1000)) from None
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    click.echo(path)


def _time_all(
    public: list[Implementation],
    cases: list[tuple[str, Case]],
    device: torch.device,
    child: ChildOptions,
    seed: int,
    count: Repetitions,
) -> list[RivalResult]:
    progress = TerminalProgress(Console(stderr=True))
    log = ChildLog(log_folder() / f"calibrate-{os.getpid()}.log")

    def new_session(one: Implementation) -> Session:
        options = replace(child, inputs=one.inputs)

        def tell(phase: str) -> None:
            progress.phase(f"{one.name}: {phase}")

        return Session(one.submission, options, Limits(), log, tell, strict=False)

    simple = simple_implementation(device.type)
    rivals = Rivals(public, simple, new_session, lambda _: None, set(), everything=True)
    results: list[RivalResult] = []
    try:
        for session in rivals.sessions:
            session.start()
        for number, (suite, case) in enumerate(cases, start=1):
            progress.case(number, len(cases), case.name)
            known = answers(case, seed, NO_AUDITS, AuditSeeds(), device)
            rivals.prepare(suite, case, seed, count, known)
            rivals.complete_turns()
            if noisy(rivals.results()):
                rivals.forget_turns()
                rivals.complete_turns()
            rivals.gauge()
            results += rivals.results()
    finally:
        for session in rivals.sessions:
            session.close()
        progress.close()
        log.close()
    return results


def _chosen_cases(cases_file: Path | None, names: tuple[str, ...]) -> list[tuple[str, Case]]:
    files = [cases_file] if cases_file else case_files()
    _, chosen = choose_cases(files, names, (), () if cases_file else DEFAULT_SUITES)
    timed = [(suite, case) for suite, case in chosen if case.timed]
    if not timed:
        raise CaseFileError("--suite", None, "", "none of these suites has a timed case")
    return timed
