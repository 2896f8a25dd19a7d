"""`run.py check`: options and wiring."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from judge.check import CheckPlan, check
from judge.check_report import CheckReport, check_to_json
from judge.check_session import CheckLimits
from judge.commands.run_options import CASES, INTERRUPTED, usage_errors
from judge.commands.store_option import open_store
from judge.profiles import DEFAULT_PROFILE, PROFILES
from judge.progress import TerminalProgress
from judge.sandbox.kinds import MODES, SANDBOX_HELP, choose_sandbox
from judge.submission import find_submission
from judge.suites import load_suites, select_cases
from judge.views.check_csv import check_csv
from judge.views.check_table import print_check
from judge.views.printing import print_for_people


@click.command("check", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--case", "case_names", multiple=True, metavar="NAME", help="A case; repeatable.")
@click.option(
    "--suite",
    "suite_names",
    multiple=True,
    metavar="NAME",
    help="All cases of a suite; repeatable. Default: every suite.",
)
@click.option(
    "--cases",
    "cases_file",
    type=click.Path(path_type=Path),
    help="A suite file to use in place of the ones in cases/.",
)
@click.option(
    "--profile",
    "profile_name",
    type=click.Choice(sorted(PROFILES)),
    default=DEFAULT_PROFILE,
    help=f"The device to check for. Default: {DEFAULT_PROFILE}, the lab's slice.",
)
@click.option(
    "--output-format",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    help="Default: table.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=CheckLimits.compile,
    metavar="SECONDS",
    help="Limit for compiling a kernel; importing and calling have their own. Default: 600.",
)
@click.option("--sandbox", type=click.Choice(MODES), default="auto", help=SANDBOX_HELP)
@click.option(
    "--store",
    "store_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also keep the report in this store, for the site's pages. Default: nowhere.",
)
@click.pass_context
def check_command(
    context: click.Context,
    path: Path,
    case_names: tuple[str, ...],
    suite_names: tuple[str, ...],
    cases_file: Path | None,
    profile_name: str,
    output_format: str,
    timeout: float,
    sandbox: str,
    store_file: Path | None,
) -> None:
    """Check the submission at PATH without a GPU: does it compile, does it fit the device.

    Every case is called with stand-in tensors on a stand-in device; TileLang compiles each kernel
    for sm_90a into the cache that grading uses. Nothing is launched. Exit status: 0 nothing
    wrong, 1 something is, 2 wrong usage, 130 interrupted.
    """
    with usage_errors():
        files = [cases_file] if cases_file else sorted(CASES.glob("*.yaml"))
        chosen = select_cases(load_suites(files), suite_names, case_names)
        submission = find_submission(path)
        contained = choose_sandbox(sandbox)
    if contained.note:
        click.echo(contained.note, err=True)
    plan = CheckPlan(
        submission=submission,
        cases=[(suite.name, case) for suite, case in chosen],
        profile=PROFILES[profile_name],
        limits=CheckLimits(compile=timeout),
        sandbox=contained,
    )
    if store_file is not None:  # one that cannot be opened is told before the work, not after
        with usage_errors(), open_store(store_file, must_exist=False):
            pass
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    progress = TerminalProgress(Console(stderr=True))
    try:
        report = check(plan, progress)
    finally:
        progress.close()
    _show(report, output_format)
    if store_file is not None and not report.interrupted:
        with usage_errors(), open_store(store_file, must_exist=False) as store:
            store.keep_check(report)
    if report.interrupted:
        context.exit(INTERRUPTED)
    context.exit(1 if report.verdict == "failed" else 0)


def _show(report: CheckReport, output_format: str) -> None:
    if output_format == "json":
        click.echo(check_to_json(report))
    elif output_format == "csv":
        click.echo(check_csv(report), nl=False)
        for case in report.cases:
            if case.detail:
                click.echo(f"{case.case.name}: {case.verdict}: {case.detail}", err=True)
    else:
        print_for_people(partial(print_check, report))
