"""`run.py leaderboard`: options and wiring."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from judge.commands.store_option import open_store, store_option
from judge.commands.usage import WrongUsage, light_usage_errors, say
from judge.leaderboard import names_of, store_boards
from judge.views.board import boards_csv, boards_json, markdown, print_boards
from judge.yamlfile import shown, suggestion

_FORMATS = {"csv": boards_csv, "json": boards_json, "md": markdown}


@click.command("leaderboard", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", *_FORMATS]),
    default="table",
    help="Default: table.",
)
@click.option(
    "--by",
    metavar="total|public|hidden|CASE",
    help="What to rank by. Default: the total, or the first scored suite where there is none.",
)
@click.option(
    "--attempt",
    type=click.Choice(["best", "latest"]),
    default="best",
    help="Which of a participant's attempts counts. Default: best.",
)
@store_option
def leaderboard_command(
    output_format: str, by: str | None, attempt: str, store_file: Path | None
) -> None:
    """Rank what `grade` has kept.

    Results are ranked together only where everything but the submission was the same: device, SM
    budget, protocol, baseline, versions and cases. Scores that differ by less than the measured
    spread share a rank. Hidden cases are h1, h2, … Exit status: 0, or 2 wrong usage.
    """
    with light_usage_errors(), open_store(store_file) as store:
        boards = store_boards(store, by, attempt == "latest")
    known = names_of(boards)
    if by is not None and boards and by not in known:
        raise WrongUsage(f"--by: {shown(by)} is not there; {suggestion(by, known)}")
    if not boards:
        say("nothing is graded yet")
    if len(boards) > 1 and output_format != "table":
        say(f"{len(boards)} boards, graded under different conditions: never rank them together")
    if output_format == "table":
        print_boards(boards, Console())
    else:
        click.echo(_FORMATS[output_format](boards).rstrip("\n"))
