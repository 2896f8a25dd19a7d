"""The options of the commands that read boards, and the boards that have what they name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from judge.commands.usage import WrongUsage
from judge.hints import shown, suggestion
from judge.leaderboard import Board, names_of


def board_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --by and --attempt, which say what counts."""
    for option in (
        click.option(
            "--attempt",
            type=click.Choice(["best", "latest"]),
            default="best",
            help="Which of a participant's attempts counts. Default: best.",
        ),
        click.option(
            "--by",
            metavar="total|SUITE|CASE",
            help="What to rank by: the total, a suite with timed cases, such as public or smoke, "
            "or a case. Default: the total, or the first scored suite where there is none.",
        ),
    ):
        command = option(command)
    return command


def boards_with(boards: Sequence[Board], by: str | None) -> list[Board]:
    """The boards that can be ranked by that; all of them where it is None.

    Raises WrongUsage where there are boards, and none of them can.
    """
    chosen = [board for board in boards if by is None or by in board.names]
    if by is not None and boards and not chosen:
        raise WrongUsage(f"--by: {shown(by)} is not there; {suggestion(by, names_of(boards))}")
    return chosen
