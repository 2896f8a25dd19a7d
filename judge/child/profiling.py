"""Calling the submission under PyTorch's own profiler, inside the child."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from judge.child.protocol import ProfiledRow

MAX_ROWS = 40
MAX_NAME_CHARACTERS = 200


def profile_calls(
    call: Callable[[], object], count: int, device: torch.device
) -> list[ProfiledRow]:
    """What `count` calls spend their time on, the longest first, device before host.

    One call goes before them, since the profiler's first start is slow. On CUDA, kernels and
    copies are rows of their own; an operator's row holds its host time alone, so that nothing is
    counted twice.
    """
    activities = [ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    for calls in (1, count):
        with profile(activities=activities) as profiler:
            for _ in range(calls):
                call()
            if device.type == "cuda":
                torch.cuda.synchronize()
    rows = []
    for event in profiler.key_averages():
        on_device = event.device_type == DeviceType.CUDA
        total_us = event.self_device_time_total if on_device else event.self_cpu_time_total
        if total_us > 0:
            name = event.key[:MAX_NAME_CHARACTERS]
            kind = "cuda" if on_device else "cpu"
            rows.append(ProfiledRow(name, kind, event.count, float(total_us)))
    rows.sort(key=lambda row: (row.kind != "cuda", -row.total_us))
    return rows[:MAX_ROWS]
