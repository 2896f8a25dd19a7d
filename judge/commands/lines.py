"""Lines for whoever watches, which stop nothing where they cannot be printed."""

from __future__ import annotations

import sys
from contextlib import suppress

import click

from judge.commands.output import send_nowhere


def print_line(text: str, *, err: bool = False) -> bool:
    """Print a line at once, on standard error with `err`; whether there was room for it.

    Where there was none, nothing more of that stream is printed.
    """
    stream = sys.stderr if err else sys.stdout
    try:
        click.echo(text, file=stream)
        stream.flush()
    except OSError:
        with suppress(OSError):
            send_nowhere(stream.fileno())
        return False
    return True
