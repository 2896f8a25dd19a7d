"""Calling the submission inside the child: once, or timed as the lab times."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

import torch

from judge.child.driver import Driver

Result = object
Held = Callable[[], AbstractContextManager[None]]
Keep = Callable[[Result, int], None]


@dataclass
class TimedCalls:
    """Milliseconds of each timed call, and what the first (copied) and the last one returned."""

    samples_ms: list[float]
    first: Result
    last: Result


@dataclass
class TimedCall:
    """One call: milliseconds, microseconds from the stop event until the device was idle, the
    copies of the result included, and what it returned."""

    milliseconds: float
    busy_us: float
    result: Result


def time_call(
    call: Callable[[], Result],
    renew: Callable[[], None],
    keep: Keep,
    driver: Driver | None,
    held: Held = nullcontext,
    *,
    rehearsed: bool = False,
) -> TimedCall:
    """Renew the inputs, then time one call on an idle device and wait until all its work ended.

    keep: copies what was returned; it is told the handle of the current stream, 0 on a CPU. On CUDA
    the copies are queued there right behind the stop event: what another stream has not finished by
    then is not in them. held: entered for the call and the copies. rehearsed: both are done once
    before the inputs are renewed, outside of `held`, so that the timed call finds the processor
    more as calls in the lab's loop do, and what waits for the whole device is done. Garbage is
    looked for in the call alone: elsewhere a finaliser could work unseen. driver: CUDA's, None on a
    CPU.
    """
    time_one = partial(_time_until_idle, driver=driver) if driver is not None else _time_and_keep
    with _CollectingInside(call) as collecting_call:
        if rehearsed:
            time_one(collecting_call, keep, nullcontext)
        renew()
        return time_one(collecting_call, keep, held)


def _time_until_idle(
    call: Callable[[], Result], keep: Keep, held: Held, driver: Driver
) -> TimedCall:
    start, end, kept = (torch.cuda.Event(enable_timing=True) for _ in range(3))
    for event in (end, kept):
        event.record()
    torch.cuda.synchronize()
    with held():
        start.record()
        result = call()
        # from here to the last event no other thread of Python gets in between
        stream = torch.cuda.current_stream().cuda_stream
        driver.record(end, stream)
        keep(result, stream)
        driver.record(kept, stream)
        kept.synchronize()
    copied = time.perf_counter_ns()
    torch.cuda.synchronize()
    waited_us = (time.perf_counter_ns() - copied) / 1e3
    busy_us = end.elapsed_time(kept) * 1e3 + waited_us
    return TimedCall(start.elapsed_time(end), busy_us, result)


def _time_and_keep(call: Callable[[], Result], keep: Keep, held: Held) -> TimedCall:
    with held():
        milliseconds, result = _time_with_host_clock(call)
    keep(result, 0)
    return TimedCall(milliseconds, 0.0, result)


class _CollectingInside:
    """Python's search for garbage off in a with block, and as the call left it inside the call."""

    def __init__(self, call: Callable[[], Result]) -> None:
        self._call = call
        self._collects = False

    def __enter__(self) -> Callable[[], Result]:
        self._collects = gc.isenabled()
        gc.disable()
        return self._collecting_call

    def __exit__(self, *_: object) -> None:
        if self._collects:
            gc.enable()

    def _collecting_call(self) -> Result:
        if self._collects:
            gc.enable()
        try:
            return self._call()
        finally:
            self._collects = gc.isenabled()
            gc.disable()


def time_calls(
    call: Callable[[], Result],
    warmup: int,
    repetitions: int,
    device: torch.device,
    held: Held = nullcontext,
) -> TimedCalls:
    """Warm up, then time each call as the lab's own loop does (docs/lab.md, judging).

    On CUDA a pair of events around each call, on a CPU the host's clock. The profiler range
    (cudaProfilerStart, cudaProfilerStop) encloses exactly the timed calls. The first timed
    result is copied between two calls, outside the timed intervals. held: entered for each of
    the timed calls.
    """
    on_cuda = device.type == "cuda"
    time_one = _time_with_events if on_cuda else _time_with_host_clock
    samples_ms: list[float] = []
    first: Result = None
    last: Result = None
    for _ in range(warmup):
        call()
    if on_cuda:
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
    for repetition in range(repetitions):
        last = None  # freed before the call, so that its memory can serve again
        with held():
            milliseconds, last = time_one(call)
        samples_ms.append(milliseconds)
        if repetition == 0:
            first = copy_of(last)
    if on_cuda:
        torch.cuda.profiler.stop()
    return TimedCalls(samples_ms, first, last)


def copy_of(result: Result) -> Result:
    """The result with its tensors copied, so that later calls cannot change it."""
    if not isinstance(result, tuple | list):
        return result
    copied = tuple(
        item.detach().clone() if isinstance(item, torch.Tensor) else item for item in result
    )
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return copied


def _time_with_events(call: Callable[[], Result]) -> tuple[float, Result]:
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    start.record()
    result = call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end), result


def _time_with_host_clock(call: Callable[[], Result]) -> tuple[float, Result]:
    start = time.perf_counter_ns()
    result = call()
    return (time.perf_counter_ns() - start) / 1e6, result
