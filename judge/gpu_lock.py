"""One judge at a time on a GPU."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FOLDER = Path("/tmp")  # not TMPDIR: judges of all users must meet


class LockError(OSError):
    """The lock's file cannot be used; the text is one line."""


@contextmanager
def gpu_lock(gpu: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a GPU, named by its UUID; wait for another judge, saying so once.

    Raises LockError.
    """
    with os.fdopen(_open(_FOLDER / f"gdn-judge-{gpu}.lock"), "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = "".join(c for c in file.read(20).decode("ascii", "ignore") if c.isdecimal())
            say(f"waiting for another judge on this GPU (process {holder or 'unknown'})")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        file.truncate()
        file.write(f"{os.getpid()}\n".encode())
        file.flush()
        yield


def _open(path: Path) -> int:
    try:
        with suppress(FileNotFoundError):
            # without O_CREAT, which Linux may refuse for another user's file in /tmp
            return os.open(path, os.O_RDWR)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise LockError(
            f"{path}: {error.strerror}; remove it or let every judge write it"
        ) from None
    with suppress(OSError):
        os.fchmod(descriptor, 0o666)  # judges of other users wait for it too
    return descriptor
