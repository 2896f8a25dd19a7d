"""Inside the child: what a call takes on the device, without what it costs the host."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import nullcontext

import torch

from judge.child.calls import Held
from judge.child.profiling import profile_calls

_REPLAYS = 50
_WARM_REPLAYS = 5
_PROFILED_CALLS = 20


def gpu_time(call: Callable[[], object], device: torch.device, held: Held) -> tuple[float, str]:
    """Milliseconds of one call on a CUDA device, and how they were found.

    `graph`: median of replays of a captured graph. `profiler`, where a call cannot be captured:
    its kernels and copies added up, by CUPTI's records. held: entered for the replays. Raises
    RuntimeError where neither can be had.
    """
    call()
    torch.cuda.synchronize()
    try:
        return _replayed(call, held), "graph"
    except Exception as error:
        print(f"gpu_ms: not captured in a graph: {type(error).__name__}: {error}")
    if held is not nullcontext:
        raise RuntimeError("the profiler cannot hold work to fewer SMs")
    rows = profile_calls(call, _PROFILED_CALLS, device)
    total_us = sum(row.total_us for row in rows if row.kind == "cuda")
    if total_us <= 0:
        raise RuntimeError("the profiler saw no work on the device")
    return total_us / _PROFILED_CALLS / 1e3, "profiler"


def _replayed(call: Callable[[], object], held: Held) -> float:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    samples = []
    with held():
        for replay in range(_WARM_REPLAYS + _REPLAYS):
            start = torch.cuda.Event(enable_timing=True)
            end = torch.cuda.Event(enable_timing=True)
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            if replay >= _WARM_REPLAYS:
                samples.append(start.elapsed_time(end))
    return statistics.median(samples)
