"""`run.py grade`: options and wiring."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from judge.class_progress import ClassTerminal
from judge.class_run import Ended, State, grade_class
from judge.commands.run_options import (
    INTERRUPTED,
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
from judge.reference_run import null_submission
from judge.roster import load_roster
from judge.store.schema import StoreError
from judge.store.store import Store, default_store
from judge.suites import load_suite
from judge.text import plain
from judge.uploads import find_uploads, left_alone
from judge.views.class_lines import closing_line

HIDDEN_SUITE = "hidden"
COUNTED_SUITES = ("public", HIDDEN_SUITE, "correctness")


@click.command("grade", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=click.Path(path_type=Path, exists=True), metavar="DIR")
@click.option("--case", "case_names", multiple=True, metavar="NAME", help="A case; repeatable.")
@click.option(
    "--suite",
    "suite_names",
    multiple=True,
    metavar="NAME",
    help="All cases of a suite; repeatable. Default: public, hidden and correctness, which a "
    "total needs.",
)
@click.option(
    "--cases",
    "cases_file",
    type=click.Path(path_type=Path),
    help="A suite file to use in place of the ones in cases/.",
)
@click.option(
    "--hidden",
    "hidden_file",
    type=click.Path(path_type=Path),
    help="The real hidden suite, in place of the stand-in in cases/.",
)
@click.option(
    "--roster",
    "roster_file",
    type=click.Path(path_type=Path),
    help="CSV with the columns id, name and group; id is the upload's name.",
)
@click.option(
    "--store",
    "store_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file that keeps results. Default: store.sqlite in the judge's own folder.",
)
@click.option("--fresh", is_flag=True, help="Grade what is unchanged once more.")
@run_options
@click.pass_context
def grade_command(
    context: click.Context,
    folder: Path,
    case_names: tuple[str, ...],
    suite_names: tuple[str, ...],
    cases_file: Path | None,
    hidden_file: Path | None,
    roster_file: Path | None,
    store_file: Path | None,
    fresh: bool,
    **options: Any,
) -> None:
    """Grade every submission below DIR and keep the results.

    An upload is a .py file, a folder, or a .zip or .tar.gz of one; its name says whose it is.
    What was graded under the same conditions before is passed over, so an interrupted run goes on
    where it ended. Exit status: 0 all are graded or refused, 1 the judge failed at some, 2 wrong
    usage, 130 interrupted.
    """
    with usage_errors():
        files = _suite_files(cases_file, hidden_file)
        default = () if cases_file else COUNTED_SUITES
        suites, cases = choose_cases(files, suite_names, case_names, default)
        roster = load_roster(roster_file) if roster_file else None
        places = find_uploads(folder)
        plan = make_plan(RunOptions(**options), null_submission(), suites, cases)
        store = Store(store_file or default_store())
    known = {path.resolve() for path in (roster_file, hidden_file, store_file) if path}
    for path in left_alone(folder):
        if path.resolve() not in known:
            say(plain(f"{path}: no .py file, .zip or .tar.gz; left alone"))
    to_terminal = sys.stdout.isatty()
    progress = ClassTerminal(
        Console(stderr=True), len(places), None if to_terminal else _print_at_once
    )
    try:
        with store, machine(plan, progress.message) as ready:
            ended = grade_class(ready, places, roster, store, progress, fresh=fresh)
    except StoreError as error:
        raise click.ClickException(plain(str(error), 1000)) from None
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        progress.close()
    say(closing_line(ended.outcomes, len(places)))
    context.exit(_exit_status(ended))


def _suite_files(cases_file: Path | None, hidden_file: Path | None) -> Sequence[Path]:
    if hidden_file is None:
        return [cases_file] if cases_file else case_files()
    if load_suite(hidden_file).name != HIDDEN_SUITE:
        raise WrongUsage(f"{hidden_file}: the suite of --hidden must be named {HIDDEN_SUITE}")
    if cases_file is not None:
        return [cases_file, hidden_file]
    return [*(file for file in case_files() if file.stem != HIDDEN_SUITE), hidden_file]


def _exit_status(ended: Ended) -> int:
    if ended.interrupted:
        say("interrupted: what is finished is kept, and the next run goes on from there")
        return INTERRUPTED
    if ended.lost:
        say(f"the run ends here: {plain(ended.lost)}")
        return 1
    return 1 if any(outcome.state is State.FAILED for outcome in ended.outcomes) else 0


def _print_at_once(line: str) -> None:
    click.echo(line)
    sys.stdout.flush()
