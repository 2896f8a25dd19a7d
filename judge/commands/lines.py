"""Lines for whoever watches, which stop nothing where they cannot be printed."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import click


def print_line(text: str, *, err: bool = False) -> bool:
    """Print a line at once, on standard error with `err`; whether there was room for it.

    Where there was none, nothing more of that stream is printed: what is left of the line would
    fail again whenever the stream is flushed, at the latest when Python ends.
    """
    stream = sys.stderr if err else sys.stdout
    try:
        click.echo(text, file=stream)
        stream.flush()
    except OSError:
        with suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
        return False
    return True
