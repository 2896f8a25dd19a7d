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

_CALLS, _LEAST_CALLS, _WARM_CALLS = 50, 3, 5
_ENOUGH_S = 1.0  # of calls, where they are slow
_MOST_HOST_S = 0.1  # that a call may take the host
_HELD_BACK = 3.0  # times what a call takes the host
_EVENTS_S = 30e-6  # more than the host takes to record the events
_CYCLES_A_S = 2.2e9  # about what a GPU's clock yields
_PROFILED_CALLS = 20


def gpu_time(call: Callable[[], object], device: torch.device, held: Held) -> Gauged:
    """Milliseconds of one call on a CUDA device, and how they were found.

    Medians of calls that the device, held back meanwhile, finds queued when it starts: `graph`, of
    replays of a captured graph; `queue`, of the calls themselves, where they cannot be captured,
    such as one that replays a graph itself. `profiler`, where a call waits for the device: its
    kernels and copies added up, by CUPTI's records, whose first start takes seconds. held: entered
    for what is measured. Raises RuntimeError where none can be had.
    """
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    current = torch.cuda.current_stream()
    try:
        # thread_local: a thread of the submission may use CUDA meanwhile
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            call()
        captured = True
    except Exception as error:
        captured = False
        print(f"gpu_ms: not captured in a graph: {type(error).__name__}: {error}")
        torch.cuda.set_stream(current)  # a capture that CUDA broke off leaves its own current
    if captured and (milliseconds := _behind_a_held_device(graph.replay, held)) is not None:
        return Gauged(milliseconds, "graph")
    spoilt = not _has_ended(graph)
    if (milliseconds := _behind_a_held_device(call, held)) is not None:
        return Gauged(milliseconds, "queue", spoilt)
    return Gauged(_profiled(call, device, held), "profiler", spoilt)


def _has_ended(graph: torch.cuda.CUDAGraph) -> bool:
    """Whether PyTorch's allocator and generators know that this graph's capture is over."""
    try:
        graph.pool()
    except RuntimeError:
        return False
    return True


def _behind_a_held_device(call: Callable[[], object], held: Held) -> float | None:
    """Median milliseconds of a call; None where the host does not get ahead of the device.

    Only the current stream is held back: what a call starts on another one, without waiting for
    this one first, is not in them.
    """
    torch.cuda._sleep(1)  # kernels load at their first launch, which may wait for the device
    began = time.perf_counter()
    for _ in range(_WARM_CALLS):
        call()
    host_s = (time.perf_counter() - began) / _WARM_CALLS
    torch.cuda.synchronize()
    if host_s > _MOST_HOST_S:
        return None
    cycles = int((_HELD_BACK * host_s + _EVENTS_S) * _CYCLES_A_S)
    held_back, start, end = (torch.cuda.Event(enable_timing=True) for _ in range(3))
    samples: list[float] = []
    made = 0
    began = time.perf_counter()
    with held():
        while made < (_CALLS if samples else _LEAST_CALLS):
            if made >= _LEAST_CALLS and time.perf_counter() - began > _ENOUGH_S:
                break
            torch.cuda._sleep(cycles)
            held_back.record()
            start.record()
            call()
            end.record()
            ahead = not held_back.query()
            end.synchronize()
            made += 1
            if ahead:
                samples.append(start.elapsed_time(end))
    return statistics.median(samples) if 2 * len(samples) > made else None


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
