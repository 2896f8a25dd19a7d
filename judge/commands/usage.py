"""What commands say of wrong usage; imports nothing that takes long to import."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from judge.commands.lines import print_line
from judge.parquet import ParquetError
from judge.roster import RosterError
from judge.store.schema import StoreError
from judge.text import plain

LIGHT_ERRORS = (RosterError, StoreError, ParquetError)
"""What only the caller can change, of commands that grade nothing."""


class WrongUsage(click.ClickException):
    """One line, exit status 2."""

    exit_code = 2


@contextmanager
def light_usage_errors() -> Iterator[None]:
    """Turn what only the caller can change into one line and exit status 2, without a device."""
    try:
        yield
    except LIGHT_ERRORS as error:
        raise WrongUsage(plain(str(error), 1000)) from None


def say(text: str) -> None:
    """A line on standard error, which stops nothing where it cannot be printed."""
    print_line(text, err=True)
