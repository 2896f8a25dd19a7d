"""Inside the child: the core on which its calls are timed."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

import torch

_MOST_CORES = 16
_ROUNDS = 5
_RECORDS = 20
_LOOK_EVERY_NS = 20e6
_SHARE = 0.02  # of the time, at most, for looking, and as much for trying other cores
_STILL_QUICK = 1.25  # of the least pace seen: no other core is tried
_CLEARLY_QUICKER = 0.8  # of the pace here: what is closer is not worth a move
_TAKEN_NS = 0.5e6  # a thread that arrives on an idle core runs earlier than this
_PROCESSOR_FIELD = 39 - 3  # proc(5): field 39 of stat, counted from field 3 behind the name


class QuickestCore:
    """Keeps this thread on a core, of those it may use now, on which `work` takes little time.

    The same launch takes the host up to three times as long at one moment as at another
    (docs/measurements.md), and moving between cores costs it some microseconds: short kernels
    would show both. So the thread stays where it is, unless work takes longer than it did and
    another core is clearly quicker.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._allowed = sorted(os.sched_getaffinity(0))
        self._kept = False
        self._least_ns = math.inf
        self._look_again_ns = self._try_again_ns = -math.inf

    def settle(self, *, now: bool = False) -> None:
        """Stay on one core, which is looked at again from time to time, or now."""
        began_ns = time.perf_counter_ns()
        if self._kept and not now and began_ns < self._look_again_ns:
            return
        try:
            self._choose()
            self._kept = True
        except OSError:  # the process may use other cores by now
            self.leave()
        self._look_again_ns = _next_ns(began_ns, _LOOK_EVERY_NS)

    def leave(self) -> None:
        """Let the thread run on all its cores again."""
        self._kept = False
        with suppress(OSError):
            os.sched_setaffinity(0, self._allowed)

    def _choose(self) -> None:
        here = core_now()
        self._work()
        pace_ns = self._pace_ns(here)
        began_ns = time.perf_counter_ns()
        slow = pace_ns > _STILL_QUICK * self._least_ns and began_ns >= self._try_again_ns
        if slow or self._least_ns == math.inf:
            count = min(len(self._allowed), _MOST_CORES)
            tried = {self._allowed[len(self._allowed) * n // count] for n in range(count)}
            paces = {core: self._pace_ns(core) for core in sorted(tried - {here})}
            quickest = min(paces, key=paces.__getitem__, default=here)
            moves = quickest != here and paces[quickest] < _CLEARLY_QUICKER * pace_ns
            os.sched_setaffinity(0, {quickest if moves else here})
            self._least_ns = min([self._least_ns, *paces.values()])
            self._try_again_ns = _next_ns(began_ns)
        self._least_ns = min(self._least_ns, pace_ns)

    def _pace_ns(self, core: int) -> float:
        """Nanoseconds of the work on a core; endless on one where something else is running."""
        start = time.perf_counter_ns()
        os.sched_setaffinity(0, {core})
        self._work()  # its caches are cold where the thread has just arrived
        if time.perf_counter_ns() - start > _TAKEN_NS:
            return math.inf
        times = []
        for _ in range(_ROUNDS):
            start = time.perf_counter_ns()
            self._work()
            times.append(time.perf_counter_ns() - start)
        return statistics.median(times)


def _next_ns(began_ns: float, least_ns: float = 0.0) -> float:
    """When what began then and ends now may be done again, so that it takes no more than _SHARE."""
    now = time.perf_counter_ns()
    return now + max(least_ns, (now - began_ns) / _SHARE)


@contextmanager
def _settled(core: QuickestCore) -> Iterator[None]:
    core.settle()
    try:
        yield
    finally:
        core.leave()


def quickest_core(device: torch.device) -> AbstractContextManager[None]:
    """On a core where launches on a GPU are quick now; for a CPU, on all cores."""
    return _settled(QuickestCore(launch_probe())) if device.type == "cuda" else nullcontext()


def launch_probe() -> Callable[[], None]:
    """What the host does for a call, many times over: Python, and orders to the CUDA driver."""
    event = torch.cuda.Event(enable_timing=True)

    def record() -> None:
        for _ in range(_RECORDS):
            event.record()

    return record


def core_now() -> int:
    """The core on which this thread runs."""
    fields = Path("/proc/thread-self/stat").read_text().rpartition(")")[2].split()
    return int(fields[_PROCESSOR_FIELD])
