"""Which lanes a machine gives a run: its GPUs and MIG instances, and its cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from typing import Any, TypeVar

import torch

from judge.device import MIG, gpu_identity
from judge.engines.local import LaneDevice
from judge.threads import physical_cores

CORES_PER_LANE = 4
"""Judge, submission, null submission and what else takes turns; never more than two compute.
Physical ones, with all their threads, where there are enough."""

Share = TypeVar("Share")


def lane_devices(
    device: torch.device, every: bool, jobs: int | None, say: Callable[[str], None]
) -> list[LaneDevice]:
    """One lane for each visible GPU like `device`, or one on a CPU; pinned where cores suffice.

    every: False for the lane of `device` alone. jobs: at most as many lanes; on a CPU, as many.
    say: told of GPUs that are left out because they are of another kind.
    """
    if device.type == "cpu":
        names = [f"cpu-{number}" for number in range(1, (jobs or 1) + 1)]
        # a lone lane has all cores to itself, as a run of a single submission has
        shares = divided(own_cores(), len(names)) if len(names) > 1 else [()]
        return [LaneDevice(name, "", share) for name, share in zip(names, shares, strict=True)]
    names = _gpus(device, say) if every else [_name(device)]
    names = names[:jobs]
    wanted, spared = CORES_PER_LANE * len(names), len(names)
    cores = physical_cores(own_cores())
    if len(cores) < wanted + spared:
        cores = [(core,) for core in own_cores()]
    if len(cores) < wanted + spared:
        return [LaneDevice(name, name) for name in names]
    shares = divided(cores[:wanted], len(names))
    return [
        LaneDevice(name, name, tuple(sorted(chain.from_iterable(share))))
        for name, share in zip(names, shares, strict=True)
    ]


def spare_cores(lanes: Sequence[LaneDevice]) -> list[int]:
    """The cores to which no lane is pinned; none where lanes are not pinned."""
    if not any(lane.cores for lane in lanes):
        return []
    taken = {core for lane in lanes for core in lane.cores}
    return [core for core in own_cores() if core not in taken]


def own_cores() -> list[int]:
    """The cores that this process may run on, ascending."""
    return sorted(os.sched_getaffinity(0))


def divided(cores: Sequence[Share], parts: int) -> list[tuple[Share, ...]]:
    """Disjoint neighbouring shares that differ by one core at most; empty ones if too few."""
    if len(cores) < parts:
        return [()] * parts
    bounds = [len(cores) * number // parts for number in range(parts + 1)]
    return [tuple(cores[a:b]) for a, b in pairwise(bounds)]


def mig_instances(nvml: Any, visible: str | None) -> list[str]:
    """UUIDs of the MIG instances that may be used, by NVIDIA's management library `nvml`.

    visible: CUDA_VISIBLE_DEVICES, whose own MIG instances are the ones where it names any.
    CUDA shows a process no more than one of them.
    """
    named = [name for name in (visible or "").split(",") if name.startswith(MIG)]
    if named:
        return named
    found = []
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        most = 0
        with suppress(nvml.NVMLError):  # a device that cannot be divided
            if nvml.nvmlDeviceGetMigMode(handle)[0] == nvml.NVML_DEVICE_MIG_ENABLE:
                most = nvml.nvmlDeviceGetMaxMigDeviceCount(handle)
        for number in range(most):
            with suppress(nvml.NVMLError):  # no instance has this number
                instance = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
                found.append(_text(nvml.nvmlDeviceGetUUID(instance)))
    return found


def _gpus(device: torch.device, say: Callable[[str], None]) -> list[str]:
    instances = _instances()
    if instances:  # each lane finds out by itself whether its instance is of the run's kind
        return instances
    found = [torch.device("cuda", index) for index in range(torch.cuda.device_count())]
    alike = [one for one in found if _kind(one) == _kind(device)]
    for other in found:
        if other not in alike:
            say(f"{other} is another kind of device ({_kind(other)[0]}); left out of this run")
    return [_name(one) for one in alike]


def _instances() -> list[str]:
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        return mig_instances(pynvml, os.environ.get("CUDA_VISIBLE_DEVICES"))
    finally:
        pynvml.nvmlShutdown()


def _kind(device: torch.device) -> tuple[str, int]:
    properties = torch.cuda.get_device_properties(device)
    return properties.name, properties.multi_processor_count


def _name(device: torch.device) -> str:
    """As CUDA_VISIBLE_DEVICES takes it."""
    identity = gpu_identity(device)
    return identity if identity.startswith(MIG) else f"GPU-{identity}"


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
