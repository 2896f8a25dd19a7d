"""A thread that watches what a child takes, and ends it above a limit."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from judge.sandbox.processes import proportional_memory, signal_all, usage
from judge.sandbox.tree import walk

_PERIOD_S = 0.1
_FOLDER_PERIOD_S = 1.0
_GIB = 2**30
_BLOCK = 512  # what st_blocks counts, stat(2)


@dataclass(frozen=True)
class ResourceLimits:
    """What a child may take.

    tasks: processes and threads of it all together. open_files, file_bytes: of each process.
    folder_bytes, folder_files: of all it keeps in its folder, its compile cache included.
    cpu_s: CPU seconds of each process, for each thread that it was told to use.
    """

    tasks: int = 512
    open_files: int = 4096
    file_bytes: int = 4 * _GIB
    folder_bytes: int = 8 * _GIB
    folder_files: int = 100_000
    cpu_s: int = 4 * 3600

    def for_threads(self, threads: int) -> int:
        """Tasks for a child that computes on `threads` threads: each library keeps a pool."""
        return max(self.tasks, 16 * threads)


class Watch:
    """Looks every 0.1 s; the first limit that is exceeded ends the child and stays in `excess`."""

    def __init__(
        self,
        find: Callable[[], set[int]],
        end: Callable[[], None],
        folder: Path,
        memory_limit: int,
        task_limit: int,
        limits: ResourceLimits,
    ) -> None:
        self.excess = ""
        self._find = find
        self._end = end
        self._folder = folder
        self._memory_limit = memory_limit
        self._task_limit = task_limit
        self._limits = limits
        self._paused = False
        self._next_count = 0.0
        self._signals = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def pause(self, paused: bool) -> None:
        """Stop all that the child runs, or let it go on."""
        with self._signals:
            self._paused = paused
            self._signal(signal.SIGSTOP if paused else signal.SIGCONT)

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        next_folder = 0.0
        while not self._stop.wait(_PERIOD_S):
            self.excess = self._too_much()
            if not self.excess and time.monotonic() >= next_folder:
                start = time.monotonic()
                self.excess = self._folder_too_full()
                # a folder of many files takes long to count: at most a tenth of the time
                spent = time.monotonic() - start
                next_folder = time.monotonic() + max(_FOLDER_PERIOD_S, 10 * spent)
            if self.excess:
                self._end()
                return

    def _too_much(self) -> str:
        pids = self._find()
        taken = usage(pids)
        if taken.tasks > self._task_limit:
            return f"ran {taken.tasks} processes and threads, more than {self._task_limit}"
        if taken.resident <= self._memory_limit:
            return ""
        resident = taken.resident
        if len(pids) > 1:
            if time.monotonic() < self._next_count:
                return ""
            start = time.monotonic()
            resident = self._own_memory(pids)
            self._next_count = time.monotonic() + 10 * (time.monotonic() - start)
        if resident <= self._memory_limit:
            return ""
        return (
            f"took {resident / _GIB:.1f} GiB of memory, "
            f"more than the limit of {self._memory_limit / _GIB:.1f} GiB"
        )

    def _own_memory(self, pids: set[int]) -> int:
        """Resident bytes of processes that share pages.

        They are stopped meanwhile: counting takes milliseconds a process, and a fork bomb would
        leave the judge no time for it.
        """
        with self._signals:
            self._signal(signal.SIGSTOP)
            shared_out = proportional_memory(pids)
            if not self._paused:
                self._signal(signal.SIGCONT)
        return usage(pids).resident if shared_out is None else shared_out

    def _signal(self, number: signal.Signals) -> None:
        signal_all(self._find, number)

    def _folder_too_full(self) -> str:
        size, files = folder_size(self._folder, self._limits.folder_files)
        if files > self._limits.folder_files:
            return f"wrote more than {self._limits.folder_files} files"
        if size > self._limits.folder_bytes:
            return (
                f"wrote {size / _GIB:.1f} GiB of files, "
                f"more than the limit of {self._limits.folder_bytes / _GIB:.1f} GiB"
            )
        return ""


def folder_size(folder: Path, most_files: int) -> tuple[int, int]:
    """Bytes on disk and number of entries below `folder`; counting ends above `most_files`."""
    size = files = 0
    for entry in walk(folder):
        files += 1
        if files > most_files:
            break
        with contextlib.suppress(OSError):  # gone meanwhile
            size += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
    return size, files
