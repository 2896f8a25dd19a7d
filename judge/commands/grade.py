"""`run.py grade` and `regrade`: options and wiring."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from judge.bench import Plan
from judge.case import HIDDEN_SUITE
from judge.class_progress import ClassTerminal
from judge.class_run import ClassRun, Ended, State, grade_class
from judge.commands.engine_options import (
    Connection,
    EngineOptions,
    connected,
    engine_options,
    measuring,
)
from judge.commands.lines import print_line
from judge.commands.run_options import (
    INTERRUPTED,
    RunOptions,
    WrongUsage,
    case_files,
    choose_cases,
    make_plan,
    run_options,
    say,
    usage_errors,
)
from judge.commands.store_option import attempts_of, open_store, store_option
from judge.engines.cluster_file import ClusterError
from judge.reference_run import null_submission
from judge.roster import Participant, load_roster, normal
from judge.run_log import RunLog, run_log_path
from judge.scoring import weights_problem
from judge.sources import Listed, Source, Watched
from judge.store.schema import StoreError
from judge.store.store import Store, default_store
from judge.suites import load_suite
from judge.text import plain
from judge.uploads import Place, find_uploads, left_alone
from judge.views.class_lines import closing_line

COUNTED_SUITES = ("public", HIDDEN_SUITE, "correctness")


_CLASS_OPTIONS = (
    click.option("--case", "case_names", multiple=True, metavar="NAME", help="A case; repeatable."),
    click.option(
        "--suite",
        "suite_names",
        multiple=True,
        metavar="NAME",
        help="All cases of a suite; repeatable. Default: public, hidden and correctness, which a "
        "total needs.",
    ),
    click.option(
        "--cases",
        "cases_file",
        type=click.Path(path_type=Path),
        help="A suite file to use in place of the ones in cases/.",
    ),
    click.option(
        "--hidden",
        "hidden_file",
        type=click.Path(path_type=Path),
        help="The real hidden suite, in place of the stand-in in cases/.",
    ),
    store_option,
    engine_options,
    run_options,
)


def _class_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_CLASS_OPTIONS):
        command = option(command)
    return command


@click.command("grade", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=click.Path(path_type=Path, exists=True), metavar="DIR")
@click.option(
    "--roster",
    "roster_file",
    type=click.Path(path_type=Path),
    help="CSV with the column id, the upload's name, and, where wanted, name and group.",
)
@click.option("--fresh", is_flag=True, help="Grade what is unchanged once more.")
@click.option("--watch", is_flag=True, help="Go on with what arrives, until Ctrl-C.")
@_class_options
@click.pass_context
def grade_command(
    context: click.Context,
    folder: Path,
    roster_file: Path | None,
    fresh: bool,
    watch: bool,
    **options: Any,
) -> None:
    """Grade every submission below DIR and keep the results.

    An upload is a .py file, a folder, or a .zip or .tar.gz of one; its name says whose it is.
    What was graded under the same conditions before is passed over, so an interrupted run goes on
    where it ended. Exit status: 0 all are graded or refused, 1 the judge failed at some, 2 wrong
    usage, 130 interrupted, which is how --watch ends.
    """
    with usage_errors():
        roster = load_roster(roster_file) if roster_file else None
        source = Watched(folder) if watch else Listed(find_uploads(folder))
    known = {roster_file, options["hidden_file"], options["store_file"], options["cases_file"]}
    for path in [] if watch else left_alone(folder):
        if path.resolve() not in {one.resolve() for one in known if one is not None}:
            say(plain(f"{path}: no .py file, .zip or .tar.gz; left alone"))
    with _interruptible(), ExitStack() as stack:
        with usage_errors():
            prepared = _prepare(stack, must_exist=False, **options)
        status = _grade(prepared, source, roster, fresh=fresh, whole=True)
    context.exit(status)


@click.command("regrade", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("participant", metavar="ID")
@click.option("--attempt", metavar="NAME", help="That attempt alone. Default: all of them.")
@_class_options
@click.pass_context
def regrade_command(
    context: click.Context, participant: str, attempt: str | None, **options: Any
) -> None:
    """Grade a participant's uploads again, from where they were found last.

    The new results count in place of the old ones, which stay in the store. Uploads that are not
    there any more are left out; where none is, that is wrong usage. Exit status: as grade.
    """
    with _interruptible(), ExitStack() as stack:
        with usage_errors():
            prepared = _prepare(stack, must_exist=True, **options)
            places = _places_of(prepared.store, participant, attempt)
        status = _grade(prepared, Listed(places), None, fresh=True, whole=False)
    context.exit(status)


@dataclass(frozen=True)
class _Prepared:
    """What a run works with.

    device: as --device names it. connection: to workers elsewhere. store_file: the store's path.
    """

    plan: Plan
    store: Store
    device: str
    engine: EngineOptions
    connection: Connection | None
    store_file: Path


def _prepare(
    stack: ExitStack,
    case_names: Sequence[str],
    suite_names: Sequence[str],
    cases_file: Path | None,
    hidden_file: Path | None,
    store_file: Path | None,
    engine: str,
    scheduler: str | None,
    jobs: int | None,
    *,
    must_exist: bool,
    **options: Any,
) -> _Prepared:
    """Check all that the caller gave, and connect. stack: closes the store and the connection."""
    files = _suite_files(cases_file, hidden_file)
    default = () if cases_file else COUNTED_SUITES
    suites, cases = choose_cases(files, suite_names, case_names, default)
    if hidden_file and all(suite.name != HIDDEN_SUITE for suite in suites):
        raise WrongUsage("--hidden: none of its cases is asked for; add --suite hidden")
    run = RunOptions(**options)
    where = EngineOptions(engine, scheduler, jobs)
    connection = stack.enter_context(connected(where, run.wish))
    host = connection.workers.host if connection else None
    plan = make_plan(run, null_submission(), suites, cases, host)
    store = stack.enter_context(open_store(store_file, must_exist=must_exist))
    store_file = store_file or default_store()
    if problem := weights_problem({suite.name: suite.weight for suite in suites}):
        say(f"no submission gets a total: {problem}")
    return _Prepared(plan, store, run.device, where, connection, store_file)


def _places_of(store: Store, participant: str, attempt: str | None) -> list[Place]:
    """Where a participant's attempts were seen, as far as they are there still, which is told.

    Raises StoreError, and WrongUsage where none is.
    """
    seen = attempts_of(store, participant, attempt)
    found = {one.path: Place(Path(one.path), one.participant, one.label) for one in seen}
    places = [place for place in found.values() if os.path.lexists(place.path)]
    for path in found.keys() - {str(place.path) for place in places}:
        gone = f"{normal(participant)}'s upload is not at {path} any more"
        if not places:
            raise WrongUsage(plain(f"{gone}; put it back or run grade", 1000))
        say(plain(f"{gone}; left out", 1000))
    return places


def _grade(
    prepared: _Prepared,
    source: Source,
    roster: Mapping[str, Participant] | None,
    *,
    fresh: bool,
    whole: bool,
) -> int:
    """Grade, tell, and return the exit status."""
    line = None if sys.stdout.isatty() else _print_at_once
    progress = ClassTerminal(Console(stderr=True), source.total, line, say)
    store = prepared.store
    log = RunLog(run_log_path(prepared.store_file))
    try:
        with measuring(
            prepared.plan, prepared.engine, prepared.device, prepared.connection, progress.message
        ) as means:
            plan = means.plan
            log.begin(
                device=plan.environment.device_name,
                lanes=means.engine.lanes(),
                lane_cores=means.lane_cores,
                compile_workers=means.stage.workers if means.stage else 0,
                cases=len(plan.cases),
            )
            run = ClassRun(
                plan, means.engine, means.stage, store, roster, progress, log, fresh, whole
            )
            ended = grade_class(run, source)
    except ClusterError as error:
        raise WrongUsage(str(error)) from None
    except StoreError as error:
        raise click.ClickException(plain(str(error), 1000)) from None
    finally:
        progress.close()
    say(closing_line(ended.outcomes, source.total))
    return _exit_status(ended)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Where nothing is under way yet that could be told of, an interrupt has a status alone."""
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


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
    if not print_line(line):
        say("standard output takes no more lines; the run goes on, and the store has all of them")
