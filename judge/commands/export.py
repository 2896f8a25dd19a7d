"""`run.py export`: options and wiring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import click

from judge.commands.board_options import board_options, boards_with
from judge.commands.store_option import open_store, store_option
from judge.commands.usage import WrongUsage, light_usage_errors, say
from judge.gradebook import gradebook, gradebook_csv, gradebook_jsonl
from judge.leaderboard import Board, store_boards
from judge.parquet import write_parquet
from judge.roster import Participant, load_roster
from judge.text import plain

_FORMATS = {"csv": gradebook_csv, "jsonl": gradebook_jsonl}


def _instant(context: click.Context, option: click.Parameter, value: str | None) -> datetime | None:
    if value is None:
        return None
    try:
        return datetime.fromisoformat(value).astimezone()  # local time where it names no zone
    except ValueError:
        raise click.BadParameter(f"{value} is no time; write 2026-03-01T23:59+08:00") from None


@click.command("export", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--gradebook",
    "roster_file",
    type=click.Path(path_type=Path),
    required=True,
    metavar="ROSTER",
    help="The roster, CSV with the column id and, where wanted, name and group: a line for each of "
    "its people.",
)
@click.option(
    "--deadline",
    callback=_instant,
    metavar="TIME",
    help="ISO 8601, local time unless it names a zone; uploads changed later are marked late, and "
    "count only for who has no score in time.",
)
@click.option(
    "--count-late", is_flag=True, help="Let late attempts count as all others do; still marked."
)
@board_options
@click.option(
    "--board",
    "number",
    type=click.IntRange(min=1),
    metavar="N",
    help="The board, numbered as by leaderboard. Default: the one that holds people of the roster.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(list(_FORMATS)),
    default="csv",
    help="Default: csv.",
)
@click.option(
    "--parquet",
    "parquet_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a Parquet file in place of standard output.",
)
@store_option
def export_command(
    roster_file: Path,
    deadline: datetime | None,
    count_late: bool,
    by: str | None,
    attempt: str,
    number: int | None,
    output_format: str,
    parquet_file: Path | None,
    store_file: Path | None,
) -> None:
    """Write a gradebook to standard output, from one board.

    Where several boards hold people of the roster, --board must name one. Exit status: 0, or 2
    wrong usage.
    """
    if count_late and deadline is None:
        raise WrongUsage("--count-late goes with --deadline")
    with light_usage_errors():
        roster = load_roster(roster_file)
        with open_store(store_file) as store:
            boards = store_boards(store, by, attempt == "latest", None if count_late else deadline)
    board = _chosen(boards, by, roster, number)
    if board is None:
        say("nothing is graded yet")
    elif not any(row.participant.id in roster for row in board.rows):
        place = "any board" if number is None else f"board {number}"
        text = f"nobody of {roster_file} is on {place}; are its ids the uploads' names?"
        raise WrongUsage(plain(text, 1000))
    if board is not None and not board.official:
        say("timing is not official: host clock of a CPU")
    entries = gradebook(roster, board, deadline)
    if parquet_file is not None:
        with light_usage_errors():
            write_parquet(entries, parquet_file)
        return
    click.echo(_FORMATS[output_format](entries), nl=False)


def _chosen(
    boards: Sequence[Board],
    by: str | None,
    roster: Mapping[str, Participant],
    number: int | None,
) -> Board | None:
    """The board that the caller names, else the only one with people of the roster; None where
    there is no board. Raises WrongUsage."""
    fitting = boards_with(boards, by)
    if number is not None:
        if number > len(boards):
            raise WrongUsage(f"--board: {number} is not there; the store has {len(boards)}")
        if boards[number - 1] not in fitting:
            others = " or ".join(str(board.number) for board in fitting)
            raise WrongUsage(f"--board: {number} has no {by}; name {others}")
        return boards[number - 1]
    graded = {b.number: [r.participant.id for r in b.rows if r.result is not None] for b in fitting}
    people = {place: len(roster.keys() & ids) for place, ids in graded.items()}
    holding = [board for board in fitting if people[board.number]]
    if len(holding) > 1:
        told = ", ".join(f"{board.number} has {people[board.number]}" for board in holding)
        raise WrongUsage(
            f"{len(holding)} boards, graded under different conditions, hold people of the roster: "
            f"{told}; name one with --board N, newest first, as leaderboard numbers them"
        )
    chosen = next(iter(holding or fitting), None)
    if chosen is not None and len(boards) > 1:
        say(f"{len(boards)} boards of different conditions; this is board {chosen.number}'s")
    return chosen
