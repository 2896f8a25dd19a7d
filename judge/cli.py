"""The command line: options and wiring."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from judge import __version__
from judge.bench import Plan
from judge.commands.calibrate import calibrate
from judge.commands.check import check_command
from judge.commands.decide import decisions_command, override_command, void_command
from judge.commands.export import export_command
from judge.commands.grade import grade_command, regrade_command
from judge.commands.leaderboard import leaderboard_command
from judge.commands.profile import profile
from judge.commands.run_options import (
    INTERRUPTED,
    ROOT,
    RunOptions,
    WrongUsage,
    case_files,
    choose_cases,
    machine,
    make_plan,
    run_options,
    say,
    usage_errors,
)
from judge.grading import grade
from judge.implementations import missing_packages
from judge.progress import TerminalProgress
from judge.record import Record, to_json
from judge.submission import find_submission
from judge.suites import load_suites, public_first, select_cases
from judge.text import plain
from judge.verdict import Verdict
from judge.views.benchmarks import benchmark_csv, print_benchmarks, print_prediction
from judge.views.case_list import print_cases
from judge.views.csv_rows import full_csv, lab_csv
from judge.views.other_judges import csoj_json, gradescope_json
from judge.views.participant import participant_view, visible_suites
from judge.views.printing import print_for_people
from judge.views.table import print_table

STARTER = ROOT / "submissions" / "starter"
DEFAULT_SUITE = "public"
_OTHER_JUDGES = {"csoj": csoj_json, "gradescope": gradescope_json}
_WITH_BENCHMARKS = ("table", "csv", "json")


class _Judge(click.Group):
    """The command line, which knows a path in a command's place for what it is."""

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(context, args)
        except click.UsageError:
            if not Path(args[0]).exists():
                raise
        path = plain(args[0])
        raise WrongUsage(f"{path} is no command; a submission is named with --submission {path}")


@click.group(
    cls=_Judge,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
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
    "--output-format",
    type=click.Choice(["table", "csv", "csv-full", "json", *_OTHER_JUDGES]),
    default="table",
    help="csv is the lab's own three columns; csoj and gradescope are what those systems read as "
    "the result of their last step, and exit with 0 whatever the verdict. Default: table.",
)
@click.option(
    "--view",
    type=click.Choice(["full", "participant"]),
    default="full",
    help="participant: hidden cases are h1, h2, … with verdict and score alone. Default: full.",
)
@click.option(
    "--reference-benchmarks",
    "benchmarks",
    is_flag=True,
    help="Also time the public implementations that are installed, whole forward, in turns; with "
    "--output-format table, csv or json.",
)
@click.option(
    "--list-cases",
    is_flag=True,
    help="List the cases that --suite, --case and --cases name, all of them by default, and grade "
    "nothing; with --view participant no hidden ones.",
)
@run_options
@click.pass_context
def main(
    context: click.Context,
    case_names: tuple[str, ...],
    suite_names: tuple[str, ...],
    cases_file: Path | None,
    submission: Path,
    output_format: str,
    view: str,
    benchmarks: bool,
    list_cases: bool,
    **options: Any,
) -> None:
    """Grade a Gated DeltaNet prefill submission: is it right, how fast is it, what does it score.

    Data goes to standard output, everything else to standard error. Exit status: 0 all cases
    passed, 1 something failed, 2 wrong usage, 130 interrupted.
    """
    if context.invoked_subcommand is not None:
        return
    if benchmarks and output_format not in _WITH_BENCHMARKS:
        raise WrongUsage(
            f"--reference-benchmarks: {output_format} shows none; use --output-format table, csv "
            "or json"
        )
    if list_cases and output_format != "table":
        raise WrongUsage("--list-cases is a table; leave --output-format out")
    with usage_errors():
        files = [cases_file] if cases_file else case_files()
        if list_cases:
            known = public_first(load_suites(files))
            known = visible_suites(known) if view == "participant" else known
            chosen = select_cases(known, suite_names, case_names)
            cases = [(suite.name, case) for suite, case in chosen]
            print_for_people(partial(print_cases, cases))
            return
        default = () if cases_file else (DEFAULT_SUITE,)
        suites, cases = choose_cases(files, suite_names, case_names, default)
        plan = make_plan(RunOptions(**options), find_submission(submission), suites, cases)
    if benchmarks and (missing := missing_packages()):
        say(f"not installed, so not timed: {', '.join(missing)}")
    record = _run(replace(plan, benchmarks=benchmarks))
    shown = participant_view(record) if view == "participant" else record
    _show(shown, output_format, plan.child.sandbox.note, benchmarks=benchmarks)
    context.exit(_exit_status(record, output_format))


for _command in (
    *(profile, check_command, calibrate, grade_command, regrade_command, leaderboard_command),
    *(void_command, override_command, decisions_command, export_command),
):
    main.add_command(_command)


def _run(plan: Plan) -> Record:
    progress = TerminalProgress(Console(stderr=True))
    try:
        with machine(plan, progress.message) as ready:
            return grade(ready, progress)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        progress.close()


def _show(record: Record, output_format: str, said: str, *, benchmarks: bool) -> None:
    """said: the note that was on standard error before the run."""
    if output_format == "table":
        print_for_people(partial(print_table, record))
        if record.prediction is not None:
            print_for_people(partial(print_prediction, record.prediction))
        if benchmarks:
            print_for_people(partial(print_benchmarks, record))
    elif output_format == "json":
        click.echo(to_json(record))
    elif output_format in _OTHER_JUDGES:
        click.echo(_OTHER_JUDGES[output_format](record))
    elif output_format == "csv-full":
        click.echo(full_csv(record), nl=False)
    else:
        click.echo(benchmark_csv(record) if benchmarks else lab_csv(record), nl=False)
    if record.interrupted:
        say(f"interrupted: {len(record.results)} finished cases are reported")
    if output_format in ("csv", "csv-full"):
        for note in record.notes:
            if note != said:
                say(note)
        if not record.protocol.official:
            say("timing is not official: host clock of a CPU")
        for result in record.results:
            if result.verdict is not Verdict.PASS:
                detail = f": {result.detail}" if result.detail else ""
                say(f"{result.case.name}: {result.verdict}{detail}")


def _exit_status(record: Record, output_format: str) -> int:
    if record.interrupted:
        return INTERRUPTED
    if output_format in _OTHER_JUDGES:
        return 0
    return 0 if all(result.verdict is Verdict.PASS for result in record.results) else 1
