"""`run.py leaderboard`: options and wiring."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from judge.commands.run_options import WrongUsage, say, usage_errors
from judge.leaderboard import make_boards, names_of
from judge.store.store import Store, default_store
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
@click.option(
    "--store",
    "store_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file that keeps results. Default: store.sqlite in the judge's own folder.",
)
def leaderboard_command(
    output_format: str, by: str | None, attempt: str, store_file: Path | None
) -> None:
    """Rank what `grade` has kept.

    Results are ranked together only where everything but the submission was the same: device, SM
    budget, protocol, baseline, versions and cases. Scores that differ by less than the measured
    spread share a rank. Hidden cases are h1, h2, … Exit status: 0, or 2 wrong usage.
    """
    with usage_errors(), Store(store_file or default_store(), must_exist=True) as store:
        boards = make_boards(
            store.participants(), store.attempts(), store.results(), by, attempt == "latest"
        )
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
