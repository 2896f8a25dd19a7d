"""Inside the child: what a call takes on the device, without what it costs the host."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch

from judge.child.calls import Held
from judge.child.profiling import profile_calls
from judge.child.protocol import Gauged
from judge.sm_budget import PARK_KERNEL

_REPLAYS = 50
_WARM_REPLAYS = 5
_PROFILED_CALLS = 20


def gpu_time(call: Callable[[], object], device: torch.device, held: Held) -> Gauged:
    """Milliseconds of one call on a CUDA device, and how they were found.

    `graph`: median of replays of a captured graph. `profiler`, where a call cannot be captured:
    its kernels and copies added up, by CUPTI's records. held: entered for what is measured. Raises
    RuntimeError where neither can be had.
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
    return Gauged(_profiled(call, device, held), "profiler", spoilt=not _has_ended(graph))


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
