"""Inside the child: what a call takes on the device, without what it costs the host."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

from judge.child.calls import Held
from judge.child.profiling import profile_calls
from judge.child.protocol import Gauged
from judge.sm_budget import PARK_KERNEL

_REPLAYS = 50
_WARM_REPLAYS = 5
_TRIED_CALLS, _QUEUED_CALLS = 3, 50
_QUEUED_S = 0.1  # of the host's time, in which no fewer than those that were tried must fit
_HELD_BACK = 3.0  # times what the host takes for as many calls
_CYCLES_A_S = 2.2e9  # about what a GPU's clock yields
_PROFILED_CALLS = 20


def gpu_time(call: Callable[[], object], device: torch.device, held: Held) -> Gauged:
    """Milliseconds of one call on a CUDA device, and how they were found.

    `graph`: median of replays of a captured graph. `queue`, where a call cannot be captured, such
    as one that replays a graph itself: many calls that the device finds queued when it starts, by
    their number. `profiler`, where a call waits for the device: its kernels and copies added up, by
    CUPTI's records, whose first start takes seconds. held: entered for what is measured. Raises
    RuntimeError where none can be had.
    """
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    current = torch.cuda.current_stream()
    try:
        # thread_local: a thread of the submission may use CUDA meanwhile
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            call()
        return Gauged(_replayed(graph, held), "graph")
    except Exception as error:
        print(f"gpu_ms: not captured in a graph: {type(error).__name__}: {error}")
        torch.cuda.set_stream(current)  # a capture that CUDA broke off leaves its own current
    spoilt = not _has_ended(graph)
    if (milliseconds := _queued(call, held)) is not None:
        return Gauged(milliseconds, "queue", spoilt)
    return Gauged(_profiled(call, device, held), "profiler", spoilt)


def _has_ended(graph: torch.cuda.CUDAGraph) -> bool:
    """Whether PyTorch's allocator and generators know that this graph's capture is over."""
    try:
        graph.pool()
    except RuntimeError:
        return False
    return True


def _replayed(graph: torch.cuda.CUDAGraph, held: Held) -> float:
    for _ in range(_WARM_REPLAYS):
        graph.replay()
    torch.cuda.synchronize()
    samples = []
    with held():
        for _ in range(_REPLAYS):
            start = torch.cuda.Event(enable_timing=True)
            end = torch.cuda.Event(enable_timing=True)
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            samples.append(start.elapsed_time(end))
    return statistics.median(samples)


def _queued(call: Callable[[], object], held: Held) -> float | None:
    """Milliseconds of a call among others, None where the host cannot get ahead of the device."""
    torch.cuda._sleep(1)  # kernels load at their first launch, which may wait for the device
    began = time.perf_counter()
    for _ in range(_TRIED_CALLS):
        call()
    host_s = (time.perf_counter() - began) / _TRIED_CALLS
    torch.cuda.synchronize()
    calls = min(_QUEUED_CALLS, int(_QUEUED_S / host_s))
    if calls < _TRIED_CALLS:
        return None
    held_back, start, end = (torch.cuda.Event(enable_timing=True) for _ in range(3))
    with held():
        torch.cuda._sleep(int(_HELD_BACK * calls * host_s * _CYCLES_A_S))
        held_back.record()
        start.record()
        for _ in range(calls):
            call()
        end.record()
        ahead = not held_back.query()
        end.synchronize()
    return start.elapsed_time(end) / calls if ahead else None


def _profiled(call: Callable[[], object], device: torch.device, held: Held) -> float:
    def held_call() -> None:
        with held():
            call()
            torch.cuda.current_stream().synchronize()

    rows = profile_calls(held_call, _PROFILED_CALLS, device)
    total_us = sum(row.total_us for row in rows if row.kind == "cuda" and row.name != PARK_KERNEL)
    if total_us <= 0:
        raise RuntimeError("the profiler saw no work on the device")
    return total_us / _PROFILED_CALLS / 1e3
