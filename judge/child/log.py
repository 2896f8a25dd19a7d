"""The file that takes what a child prints, cut at a size limit."""

from __future__ import annotations

import os
import threading
from pathlib import Path

MAX_LOG_BYTES = 4 * 1024 * 1024
_CUT_LINE = "\n[the judge cut this log here: it reached {} MiB]\n"


class ChildLog:
    """One log for all children of a submission; whatever exceeds the limit is read and dropped."""

    def __init__(self, path: Path, limit: int = MAX_LOG_BYTES) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.cut = False
        self._room = limit
        self._limit = limit
        self._file = path.open("wb")
        self._lock = threading.Lock()

    def heading(self, text: str) -> None:
        """Write a line of the judge's own."""
        self._write(f"[judge] {text}\n".encode())

    def drain(self, read_fd: int) -> threading.Thread:
        """Copy a pipe into the log until its writers have gone; the thread that does it."""
        thread = threading.Thread(target=self._copy, args=(read_fd,), daemon=True)
        thread.start()
        return thread

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()

    def _copy(self, read_fd: int) -> None:
        with os.fdopen(read_fd, "rb", buffering=0) as pipe:
            while data := pipe.read(1 << 16):
                self._write(data)

    def _write(self, data: bytes) -> None:
        with self._lock:
            if self._file.closed or self.cut:
                return
            self._file.write(data[: self._room])
            self._room -= len(data)
            if self._room <= 0:
                self.cut = True
                self._file.write(_CUT_LINE.format(self._limit >> 20).encode())
            self._file.flush()
