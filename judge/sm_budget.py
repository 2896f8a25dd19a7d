"""Holding a process's GPU work to some SMs of a device, on a stream of a CUDA green context.

Memory bandwidth and L2 stay whole, unlike those of a MIG slice. What is launched on a stream that
neither PyTorch's Python made nor this module escapes. The hardware hands out SMs in groups; while
something is timed, blocks that fill an SM each sit on those above the number asked for. Whatever
waits for the whole device then waits for them too, until they give up by themselves.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

WHOLE_MEMORY = "memory bandwidth and L2 are the whole device's"
SMS_HELP = f"Hold all work to N SMs; {WHOLE_MEMORY}."

PROBE = """
extern "C" __global__ void sm_probe(volatile int *seen) {
    int sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    seen[sm] = 1;
    for (int step = 0; step < 100; ++step) __nanosleep(1000);
}
"""
# 52 values that are alive across the loop cost 64 registers a thread (nvcc 13.0, sm_90a), 65536 in
# all: with those, or with all the shared memory, taken, no other block fits on the SM. One thread
# alone reads the flag, which lies in the host's memory.
_PARK = """
extern "C" __global__ void __launch_bounds__(1024, 1)
sm_park(volatile int *flags, volatile int *values, int seconds) {
    int held[52];
    #pragma unroll
    for (int i = 0; i < 52; ++i) held[i] = values[i];
    if (threadIdx.x == 0) {
        flags[1 + blockIdx.x] = 1;
        __threadfence_system();
        unsigned long long now, end;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        end = now + seconds * 1000000000ull;
        while (flags[0] == 0 && now < end) {
            __nanosleep(1000);
            asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        }
        if (flags[0] == 0) flags[1 + blockIdx.x] = 2;
    }
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 52; ++i) values[i] = held[i];
}
"""
PARK_KERNEL = "sm_park"
"""Name of the parked kernel, as profilers see it."""

_SEATED, _LEFT = 1, 2  # what a parked block writes: that it sits, that it gave up waiting
_PARKED_THREADS = 1024
_PARKED_AT_MOST_S = 20
_SEATED_WITHIN_S = 2.0
_BLOCKS_PER_SM = 64
_THREADS = 128
_MOST_SMS = 1024
_MOST_STREAMS = 16
"""GreenContext.Stream hands out 32 streams in turn, and a device has at most 32 work queues, of
which PyTorch's other streams want some: none may share the parked kernel's."""


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
    """A green context of at least `sms` SMs, its streams, and what sits on the surplus.

    stream: the one to work on. Raises RuntimeError where a probe sees another number of SMs, or
    there is no such context.
    """

    def __init__(self, device: torch.device, sms: int) -> None:
        from torch.cuda.green_contexts import GreenContext

        torch.zeros(1, device=device)  # the device's own context comes first
        self._context = GreenContext.create(num_sms=sms, device_id=device.index or 0)
        # Kept for the life of the process: PyTorch 2.11 ends it where destroying a context fails.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._context))
        self.stream = self._context.Stream()
        self._others: list[torch.cuda.Stream] = []
        self._handed_out = 0
        self._parking: _Parking | None = None
        self._parked = False
        surplus = seen_sms(self.stream) - sms
        if surplus > 0:
            self._parking = _Parking(self._context.Stream(), surplus)
        with self.held():
            seen = seen_sms(self.stream)
        if seen != sms:
            raise RuntimeError(f"a budget of {sms} SMs, and a probe ran on {seen}")

    def new_stream(self) -> torch.cuda.Stream:
        """Another stream inside; after many, one of those again, as PyTorch's own pool does."""
        if len(self._others) < _MOST_STREAMS:
            self._others.append(self._context.Stream())
        self._handed_out += 1
        return self._others[(self._handed_out - 1) % len(self._others)]

    def synchronize(self, whole: Callable[[object], None], device: object = None) -> None:
        """Wait for the device, or, while SMs are held, for the streams that were handed out.

        whole: waits for all of a device.
        """
        if not self._parked:
            whole(device)
            return
        for stream in (self.stream, *self._others):
            stream.synchronize()

    def empty_cache(self, whole: Callable[[], None]) -> None:
        """Give unused memory back, which waits for the device; not while SMs are held.

        A graph that is captured in a timed call asks for it. whole: PyTorch's own.
        """
        if not self._parked:
            whole()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Time here: the surplus SMs are taken.

        Raises RuntimeError where they could not be taken, or not for so long: something inside
        waited for the whole device, or took longer than _PARKED_AT_MOST_S.
        """
        if self._parking is None:
            yield
            return
        self._parking.enter()
        self._parked = True
        try:
            yield
        finally:
            self._parked = False
            self._parking.leave()


class _Parking:
    """Blocks that fill one SM each and sleep until they are let go, or for too long."""

    def __init__(self, stream: torch.cuda.Stream, blocks: int) -> None:
        self._stream = stream
        self._blocks = blocks
        self._pinned = torch.zeros(1 + blocks, dtype=torch.int32).pin_memory()
        flags = self._pinned.numpy()
        self._release, self._seats = flags[:1], flags[1:]
        self._values = torch.zeros(64, dtype=torch.int32, device=stream.device)
        properties = torch.cuda.get_device_properties(stream.device)
        self._shared_bytes = properties.shared_memory_per_block_optin
        self._kernel = torch.cuda._compile_kernel(_PARK, PARK_KERNEL)
        self._kernel.set_shared_memory_config(self._shared_bytes)
        torch.cuda.synchronize(stream.device)

    def enter(self) -> None:
        self._release[:] = 0
        self._seats[:] = 0
        self._kernel(
            (self._blocks, 1, 1),
            (_PARKED_THREADS, 1, 1),
            [self._pinned, self._values, _PARKED_AT_MOST_S],
            shared_mem=self._shared_bytes,
            stream=self._stream,
        )
        deadline = time.monotonic() + _SEATED_WITHIN_S
        while not (self._seats == _SEATED).all():
            if time.monotonic() > deadline:
                self.leave()
                raise RuntimeError("the surplus SMs could not be taken")

    def leave(self) -> None:
        self._release[:] = 1
        self._stream.synchronize()
        if (self._seats == _LEFT).any():
            raise RuntimeError(
                f"the surplus SMs were given back after {_PARKED_AT_MOST_S} s: a timed call took "
                "longer, or waited for the whole device, as cudaMalloc and cudaFree can"
            )


def check_budget(device: torch.device, sms: int) -> None:
    """Try a budget in this process. Raises BudgetError where device, driver or torch cannot."""
    if device.type != "cuda":
        raise BudgetError(f"--sms {sms}: needs a CUDA device; leave it out on a CPU")
    total = torch.cuda.get_device_properties(device).multi_processor_count
    if sms > total:
        raise BudgetError(f"--sms {sms}: this device has {total} SMs")
    try:
        SmBudget(device, sms)
    except (AttributeError, ImportError, OSError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BudgetError(f"--sms {sms}: not to be had here: {reason}") from None


def enter_budget(device: torch.device, sms: int) -> SmBudget:
    """Make a budget's stream current in this thread, and bring PyTorch's other streams in.

    torch.cuda.Stream() and whatever captures graphs on one then get a stream of the same context;
    torch.cuda.get_device_properties counts `sms` SMs; while SMs are held, torch.cuda.synchronize
    waits for those streams and torch.cuda.empty_cache does nothing. The budget lasts as long as the
    process. Raises RuntimeError.
    """
    budget = SmBudget(device, sms)
    torch.cuda.set_stream(budget.stream)
    whole_properties, new_stream = torch.cuda.get_device_properties, torch.cuda.Stream.__new__
    whole_synchronize, whole_empty_cache = torch.cuda.synchronize, torch.cuda.empty_cache

    def properties(device: object = None) -> BudgetProperties:
        return BudgetProperties(whole_properties(device), sms)

    def synchronize(device: object = None) -> None:
        budget.synchronize(whole_synchronize, device)

    def empty_cache() -> None:
        budget.empty_cache(whole_empty_cache)

    def stream_inside(cls: type, device: object = None, priority: int = 0, **known: Any) -> Any:
        if known:  # a stream that exists already
            return new_stream(cls, device, priority, **known)
        own = budget.new_stream()
        return new_stream(
            cls,
            stream_id=own.stream_id,
            device_index=own.device_index,
            device_type=own.device_type,
        )

    torch.cuda.get_device_properties = properties
    torch.cuda.synchronize = synchronize
    torch.cuda.empty_cache = empty_cache
    torch.cuda.Stream.__new__ = staticmethod(stream_inside)
    return budget


@cache
def _probe() -> tuple[Callable[..., None], torch.Tensor]:
    """The probe and what it writes to, made before anything is parked: either may wait for it."""
    seen = torch.zeros(_MOST_SMS, dtype=torch.int32).pin_memory()
    return torch.cuda._compile_kernel(PROBE, "sm_probe"), seen


def seen_sms(stream: torch.cuda.Stream) -> int:
    """On how many SMs the blocks of a kernel land that this stream runs."""
    probe, seen = _probe()
    seen.zero_()
    sms = torch.cuda.get_device_properties(stream.device).multi_processor_count
    probe((sms * _BLOCKS_PER_SM, 1, 1), (_THREADS, 1, 1), [seen], stream=stream)
    stream.synchronize()
    return int(seen.count_nonzero())
