"""Standard output as every command has it: what it cannot take is one line, or is written out."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class OutputError(OSError):
    """Standard output takes no more."""


class _Output(io.FileIO):
    """Standard output, whose own failures are told from those of other files."""

    def write(self, data: bytes) -> int:  # type: ignore[override]
        try:
            return super().write(data)
        except BrokenPipeError:  # click ends quietly where the reader has seen enough
            raise
        except OSError as error:
            send_nowhere(self.fileno())
            raise OutputError(error.errno, error.strerror) from None


@contextmanager
def watched_output() -> Iterator[None]:
    """Within, failures of standard output are raised as OutputError.

    Characters that its encoding lacks are written as \\xNN or \\uNNNN, as on standard error, where
    Python would end in the middle of a board.
    """
    plain = sys.stdout
    if plain is None:  # closed by the caller: nothing is printed
        yield
        return
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Output(plain.fileno(), "w", closefd=False)),
        encoding=plain.encoding,
        errors="backslashreplace",
        line_buffering=plain.isatty(),
    )
    try:
        yield
    finally:
        sys.stdout.flush()


def send_nowhere(number: int) -> None:
    """Drop what is printed to a file descriptor from now on.

    What is left of a line that found no room would fail again whenever the stream is flushed, at
    the latest when Python ends.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
