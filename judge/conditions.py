"""What the device was like around a case, through NVML; nothing is ever set."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from judge.device import MIG
from judge.record import Conditions, Timing
from judge.sandbox.processes import descendants
from judge.text import plain

SPREAD_SHARE = 0.05
SPREAD_MS = 0.02
"""A row is noisy whose p90 − p10 exceeds this share of its median and this many ms together."""

_HARMLESS = 0x1 | 0x2 | 0x100  # idle, clocks chosen by somebody, display clocks
_REASONS = {
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}


def sample_conditions(gpu: str) -> Conditions | None:
    """Clocks, temperature, power, throttle reasons and other processes of the GPU now.

    gpu: its UUID. None where there is no NVML, or it knows no such device, as for MIG slices.
    """
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        name = gpu if gpu.startswith(MIG) else f"GPU-{gpu}"
        return _sample(pynvml, pynvml.nvmlDeviceGetHandleByUUID(name))
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()


def _sample(nvml: object, handle: object) -> Conditions:
    reasons = _if_told(nvml, nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle, 0)
    bits = reasons & ~_HARMLESS
    named = [name for bit, name in _REASONS.items() if bits & bit]
    unnamed = bits & ~sum(_REASONS)
    running = _if_told(nvml, nvml.nvmlDeviceGetComputeRunningProcesses, handle, [])
    return Conditions(
        sm_mhz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
        memory_mhz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
        temperature_c=nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        power_w=nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
        throttled=named + ([f"reason {unnamed:#x}"] if unnamed else []),
        other_processes=_foreign({process.pid for process in running}),
    )


def _if_told(nvml: Any, ask: Callable[[object], Any], handle: object, otherwise: Any) -> Any:
    """What NVML answers; containers and virtual machines may be refused this or that."""
    try:
        return ask(handle)
    except nvml.NVMLError:
        return otherwise


def _foreign(found: set[int]) -> list[int]:
    """Processes on the GPU that are neither the judge, nor below it, nor what started it.

    Empty where the judge, which uses the GPU, is not found itself: the numbers are then another
    process namespace's.
    """
    if os.getpid() not in found:
        return []
    return sorted(found - descendants([os.getpid()]) - {os.getppid()})


def noise(timing: Timing, around: list[Conditions | None]) -> str:
    """Why a case's times are noisy, in one line; empty where nothing says so.

    around: conditions before and after it, as far as they are known.
    """
    known = [one for one in around if one is not None]
    others = sorted({pid for one in known for pid in one.other_processes})
    throttled = list(dict.fromkeys(reason for one in known for reason in one.throttled))
    bound_ms = SPREAD_SHARE * timing.median_ms + SPREAD_MS
    width_ms = timing.p90_ms - timing.p10_ms
    reasons = [
        f"other processes on the GPU ({', '.join(map(str, others))})" if others else "",
        f"throttled ({', '.join(throttled)})" if throttled else "",
        f"p90 − p10 is {width_ms:.3g} ms, above {bound_ms:.3g} ms" if width_ms > bound_ms else "",
    ]
    return plain("; ".join(reason for reason in reasons if reason))
