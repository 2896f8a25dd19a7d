"""`run.py leaderboard`: options and wiring."""

from __future__ import annotations

from pathlib import Path

import click

from judge.commands.board_options import board_options, boards_with
from judge.commands.store_option import open_store, store_option
from judge.commands.usage import WrongUsage, light_usage_errors, say
from judge.garbage import uncollected
from judge.leaderboard import Board, store_boards
from judge.views.board import boards_csv, boards_json, markdown, print_boards

_FORMATS = {"csv": boards_csv, "json": boards_json, "md": markdown}


@click.command("leaderboard", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", *_FORMATS, "html"]),
    default="table",
    help="html: a static site, in the folder that -o names. Default: table.",
)
@board_options
@click.option(
    "-o",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The folder of the site; an earlier site there is replaced as a whole.",
)
@click.option(
    "--private",
    is_flag=True,
    help="With html: also a page for each participant to hand out, in DIR-private.",
)
@store_option
def leaderboard_command(
    output_format: str,
    by: str | None,
    attempt: str,
    folder: Path | None,
    private: bool,
    store_file: Path | None,
) -> None:
    """Rank what `grade` has kept.

    Results are ranked together only where everything but the submission was the same: device, SM
    budget, protocol, baseline, versions and cases. Scores that differ by less than the measured
    spread share a rank. Hidden cases are h1, h2, … Exit status: 0, or 2 wrong usage.
    """
    latest = attempt == "latest"
    if output_format == "html":
        if folder is None:
            raise WrongUsage("--format html writes a folder; name it with -o DIR")
        _write_site(store_file, folder, by, latest, private)
        return
    if folder is not None or private:
        raise WrongUsage("-o and --private go with --format html")
    with uncollected():
        with light_usage_errors(), open_store(store_file) as store:
            boards = store_boards(store, by, latest)
        chosen = boards_with(boards, by)
        if not boards:
            say("nothing is graded yet")
        if len(chosen) < len(boards):
            say(f"{len(boards) - len(chosen)} of {len(boards)} boards left out: no {by} there")
        _show(chosen, output_format)


def _show(boards: list[Board], output_format: str) -> None:
    if output_format == "table":
        from rich.console import Console  # the other formats need none

        print_boards(boards, Console())
        return
    if len(boards) > 1:
        say(f"{len(boards)} boards, graded under different conditions: never rank them together")
    click.echo(_FORMATS[output_format](boards).rstrip("\n"))


def _write_site(
    store_file: Path | None, folder: Path, by: str | None, latest: bool, private: bool
) -> None:
    from judge.site.build import write_site  # the other formats need no templates
    from judge.site.folder import SiteError

    try:
        with light_usage_errors(), open_store(store_file) as store:
            if by is not None:
                boards_with(store_boards(store, by, latest), by)
            written = write_site(store, folder, by, latest, private=private)
    except SiteError as error:
        raise WrongUsage(str(error)) from None
    if not written.boards:
        say("nothing is graded yet")
    say(f"{folder}/index.html: {written.pages} pages in each language")
    if written.private is not None:
        say(f"{written.private}: a page for each participant; keep this folder to yourself")
