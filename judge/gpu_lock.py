"""One judge at a time on a GPU."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def gpu_lock(gpu: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a GPU, named by its UUID; wait for another judge, saying so once."""
    path = Path(tempfile.gettempdir()) / f"gdn-judge-{gpu}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    with suppress(OSError):
        os.fchmod(descriptor, 0o666)  # judges of other users wait for it too
    with os.fdopen(descriptor, "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another judge on this GPU (process {file.read().strip() or '?'})")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        file.truncate()
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
