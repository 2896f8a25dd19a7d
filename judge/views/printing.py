"""Tables on standard output: fitted to a terminal, and whole anywhere else."""

from __future__ import annotations

import io
import os
from collections.abc import Callable

import click
from rich.console import Console

_WIDE = 100_000


def print_for_people(show: Callable[[Console], None]) -> None:
    """Show something on standard output.

    A pipe or file has no width, unless COLUMNS gives it one: no line is wrapped there, so that
    paths can be copied, and none ends in blanks.
    """
    console = Console()
    if console.is_terminal:
        show(console)
        return
    text = io.StringIO()
    show(Console(file=text, width=console.width if os.environ.get("COLUMNS") else _WIDE))
    click.echo("".join(f"{line.rstrip()}\n" for line in text.getvalue().split("\n")[:-1]), nl=False)
