"""The file that takes what a child prints: without control characters, cut at a size limit."""

from __future__ import annotations

import codecs
import contextlib
import os
import threading
import unicodedata
from pathlib import Path

MAX_LOG_BYTES = 4 * 1024 * 1024
_CUT_LINE = "\n[judge] this log is cut here: it reached {} MiB\n"
_CONTROLS = {
    code: None
    for code in range(0x110000)
    if unicodedata.category(chr(code)) in ("Cc", "Cf") and chr(code) not in "\n\t"
}


class ChildLog:
    """One log for all children of a submission; whatever exceeds the limit is read and dropped.

    The judge's own lines begin with [judge]; each line of a child is set off by a bar, so that no
    child can write one of the judge's. A disk that takes no more cuts the log and nothing else.
    """

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
        self._write(f"\n[judge] {text}\n| ")

    def drain(self, read_fd: int) -> threading.Thread:
        """Copy a pipe into the log until its writers have gone; the thread that does it."""
        thread = threading.Thread(target=self._copy, args=(read_fd,), daemon=True)
        thread.start()
        return thread

    def close(self) -> None:
        """Close the file."""
        with self._lock, contextlib.suppress(OSError):
            self._file.close()

    def _copy(self, read_fd: int) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with os.fdopen(read_fd, "rb", buffering=0) as pipe:
            while data := pipe.read(1 << 16):
                if not self.cut:
                    text = decoder.decode(data).translate(_CONTROLS)
                    self._write(text.replace("\n", "\n| "))

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        with self._lock:
            if self._file.closed or self.cut:
                return
            try:
                self._file.write(data[: self._room])
                self._room -= len(data)
                if self._room <= 0:
                    self.cut = True
                    self._file.write(_CUT_LINE.format(self._limit >> 20).encode())
                self._file.flush()
            except OSError:
                self.cut = True
