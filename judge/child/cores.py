"""Inside the child: the core on which its calls are timed."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

_MOST_CORES = 16
_ROUNDS = 5
_RECORDS = 20


class QuickestCore:
    """Keeps this thread on the core, of those it may use, on which `work` takes least time.

    What else runs on a physical core, in another virtual machine too, makes the same launch take
    up to twice as long for seconds (docs/measurements.md), and moving between cores costs it some
    microseconds: short kernels would show both.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._allowed: set[int] | None = None  # while the thread is kept on one of these

    def settle(self) -> None:
        """Choose a core, unless the thread is on a chosen one."""
        if self._allowed is None:
            self._choose()

    def leave(self) -> None:
        """Let the thread run on all its cores again."""
        if self._allowed is not None:
            os.sched_setaffinity(0, self._allowed)
            self._allowed = None

    @contextmanager
    def chosen_anew(self) -> Iterator[None]:
        """On the core that is the quickest now; on all cores afterwards."""
        self.leave()
        self._choose()
        try:
            yield
        finally:
            self.leave()

    def _choose(self) -> None:
        self._allowed = os.sched_getaffinity(0)
        tried = sorted(self._allowed)[:: -(-len(self._allowed) // _MOST_CORES)]
        pace_ns = {core: self._pace_ns(core) for core in tried}
        os.sched_setaffinity(0, {min(tried, key=pace_ns.__getitem__)})

    def _pace_ns(self, core: int) -> float:
        os.sched_setaffinity(0, {core})
        self._work()  # on a core where it has just arrived its caches are cold
        times = []
        for _ in range(_ROUNDS):
            start = time.perf_counter_ns()
            self._work()
            times.append(time.perf_counter_ns() - start)
        return statistics.median(times)


def quickest_core(device: torch.device) -> AbstractContextManager[None]:
    """On the core where launches on a GPU are the quickest now; for a CPU, on all cores."""
    return QuickestCore(launch_probe()).chosen_anew() if device.type == "cuda" else nullcontext()


def launch_probe() -> Callable[[], None]:
    """What the host does for a call, many times over: Python, and orders to the CUDA driver."""
    event = torch.cuda.Event(enable_timing=True)

    def record() -> None:
        for _ in range(_RECORDS):
            event.record()

    return record
