"""Holding a process's GPU work to some SMs of a device, on a stream of a CUDA green context.

Memory bandwidth and L2 stay whole, unlike those of a MIG slice. What is launched on a stream that
neither PyTorch's Python made nor this module escapes. The hardware hands out SMs in groups; while
something is timed, blocks that fill an SM each sit on those above the number asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

WHOLE_MEMORY = "memory bandwidth and L2 are the whole device's"
SMS_HELP = f"Hold all work to N SMs; {WHOLE_MEMORY}."

PROBE = """
extern "C" __global__ void sm_probe(int *blocks_by_sm) {
    int sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    atomicAdd(blocks_by_sm + sm, 1);
    for (int step = 0; step < 100; ++step) __nanosleep(1000);
}
"""
# 52 values that are alive across the loop cost 64 registers a thread (nvcc 13.0, sm_90a), 65536 in
# all: with those, or with all the shared memory, taken, no other block fits on the SM.
_PARK = """
extern "C" __global__ void __launch_bounds__(1024, 1)
sm_park(volatile int *release, volatile int *seated, volatile int *values) {
    int held[52];
    #pragma unroll
    for (int i = 0; i < 52; ++i) held[i] = values[i];
    if (threadIdx.x == 0) {
        seated[blockIdx.x] = 1;
        __threadfence_system();
    }
    while (*release == 0) __nanosleep(1000);
    #pragma unroll
    for (int i = 0; i < 52; ++i) values[i] = held[i];
}
"""
_BLOCKS_PER_SM = 64
_THREADS = 128
_PARKED_THREADS = 1024
_MOST_SMS = 1024
_SEATED_WITHIN_S = 2.0


class BudgetError(ValueError):
    """A budget that cannot be had here; the text is one line."""


class BudgetProperties:
    """A device's properties as PyTorch gives them, but for multi_processor_count."""

    def __init__(self, properties: object, sms: int) -> None:
        self._properties = properties
        self.multi_processor_count = sms

    def __getattr__(self, name: str) -> object:
        return getattr(self._properties, name)


class SmBudget:
    """A green context of at least `sms` SMs, one stream of it, and what sits on the surplus.

    Raises RuntimeError where a probe sees another number of SMs, or there is no such context.
    """

    def __init__(self, device: torch.device, sms: int) -> None:
        from torch.cuda.green_contexts import GreenContext

        torch.zeros(1, device=device)  # the device's own context comes first
        self.context = GreenContext.create(num_sms=sms, device_id=device.index or 0)
        self.stream = self.context.Stream()
        self._parking: _Parking | None = None
        surplus = seen_sms(self.stream) - sms
        if surplus > 0:
            self._parking = _Parking(self.context.Stream(), surplus)
        with self.held():
            seen = seen_sms(self.stream)
        if seen != sms:
            raise RuntimeError(f"a budget of {sms} SMs, and a probe ran on {seen}")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Time here: the surplus SMs are taken. Nothing inside may wait for the whole device."""
        if self._parking is None:
            yield
            return
        self._parking.enter()
        try:
            yield
        finally:
            self._parking.leave()


class _Parking:
    """Blocks that fill one SM each and sleep until they are let go."""

    def __init__(self, stream: torch.cuda.Stream, blocks: int) -> None:
        self._stream = stream
        self._blocks = blocks
        self._release = torch.zeros(1, dtype=torch.int32).pin_memory()
        self._seated = torch.zeros(blocks, dtype=torch.int32).pin_memory()
        self._values = torch.zeros(64, dtype=torch.int32, device=stream.device)
        properties = torch.cuda.get_device_properties(stream.device)
        self._shared_bytes = properties.shared_memory_per_block_optin
        self._kernel = torch.cuda._compile_kernel(_PARK, "sm_park")
        self._kernel.set_shared_memory_config(self._shared_bytes)
        torch.cuda.synchronize(stream.device)

    def enter(self) -> None:
        self._release.zero_()
        self._seated.zero_()
        self._kernel(
            (self._blocks, 1, 1),
            (_PARKED_THREADS, 1, 1),
            [self._release, self._seated, self._values],
            shared_mem=self._shared_bytes,
            stream=self._stream,
        )
        deadline = time.monotonic() + _SEATED_WITHIN_S
        while not bool(self._seated.all()):
            if time.monotonic() > deadline:
                self.leave()
                raise RuntimeError("the surplus SMs could not be taken")

    def leave(self) -> None:
        self._release.fill_(1)
        self._stream.synchronize()


def check_budget(device: torch.device, sms: int) -> None:
    """Try a budget in this process. Raises BudgetError where device, driver or torch cannot."""
    if device.type != "cuda":
        raise BudgetError(f"--sms {sms}: needs a CUDA device")
    total = torch.cuda.get_device_properties(device).multi_processor_count
    if sms > total:
        raise BudgetError(f"--sms {sms}: this device has {total} SMs")
    try:
        SmBudget(device, sms)
    except (AttributeError, ImportError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BudgetError(f"--sms {sms}: not to be had here: {reason}") from None


def enter_budget(device: torch.device, sms: int) -> SmBudget:
    """Make a budget's stream current in this thread, and bring PyTorch's other streams in.

    torch.cuda.Stream() and whatever captures graphs on one then get a stream of the same context;
    torch.cuda.get_device_properties counts `sms` SMs. The budget lasts as long as what is returned.
    Raises RuntimeError.
    """
    budget = SmBudget(device, sms)
    torch.cuda.set_stream(budget.stream)
    whole_properties, new_stream = torch.cuda.get_device_properties, torch.cuda.Stream.__new__

    def properties(device: object = None) -> BudgetProperties:
        return BudgetProperties(whole_properties(device), sms)

    def stream_inside(cls: type, device: object = None, priority: int = 0, **known: Any) -> Any:
        if known:  # a stream that exists already
            return new_stream(cls, device, priority, **known)
        own = budget.context.Stream()
        return new_stream(
            cls,
            stream_id=own.stream_id,
            device_index=own.device_index,
            device_type=own.device_type,
        )

    torch.cuda.get_device_properties = properties
    torch.cuda.Stream.__new__ = stream_inside
    return budget


@cache
def _compiled_probe() -> Callable[..., None]:
    # Loaded once, before anything is parked: loading a module may wait for what runs.
    return torch.cuda._compile_kernel(PROBE, "sm_probe")


def seen_sms(stream: torch.cuda.Stream) -> int:
    """On how many SMs the blocks of a kernel land that this stream runs."""
    probe = _compiled_probe()
    with torch.cuda.stream(stream):
        blocks = torch.zeros(_MOST_SMS, dtype=torch.int32, device=stream.device)
        sms = torch.cuda.get_device_properties(stream.device).multi_processor_count
        probe((sms * _BLOCKS_PER_SM, 1, 1), (_THREADS, 1, 1), [blocks], stream=stream)
        seen = (blocks.cpu() > 0).sum()
    return int(seen)
