"""A CUDA device that is not there: torch answers for a chosen GPU and computes nothing.

Tensors are FakeTensors, which have shape, dtype and device and no memory. Streams, events and
graphs are objects that do nothing. Installed for good in a process that only checks.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from judge.profiles import DeviceProfile

_FIRST_ADDRESS = 0x7F00_0000_0000
_ADDRESS_STEP = 0x1_0000_0000
_GUARDS = "_ZN3c104impl26device_guard_impl_registryE"
_CUDA, _META = 1, 14  # c10::DeviceType


def install_cuda(profile: DeviceProfile) -> FakeTensorMode:
    """Make torch.cuda answer for the profile's device, and return the mode to create tensors in."""
    # Both would touch a device as soon as torch says that it has one.
    fake_tensor.init_gpu_context = lambda device: None
    FakeTensorMode.avoid_device_init = property(lambda mode: True)
    _install_device_guard()
    properties = _properties(profile)
    answers: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": lambda: None,
        "_lazy_init": lambda: None,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "get_device_properties": lambda device=None: properties,
        "get_device_name": lambda device=None: profile.device_name,
        "get_device_capability": lambda device=None: profile.capability,
        "get_arch_list": lambda: ["sm_90", "sm_90a"],
        "is_bf16_supported": lambda including_emulation=True: True,
        "mem_get_info": lambda device=None: (profile.memory, profile.memory),
        "memory_allocated": lambda device=None: 0,
        "max_memory_allocated": lambda device=None: 0,
        "memory_reserved": lambda device=None: 0,
        "max_memory_reserved": lambda device=None: 0,
        "memory_stats": lambda device=None: {},
        "reset_peak_memory_stats": lambda device=None: None,
        "empty_cache": lambda: None,
        "synchronize": lambda device=None: None,
        "manual_seed": lambda seed: None,
        "manual_seed_all": lambda seed: None,
        "current_stream": lambda device=None: _STREAM,
        "default_stream": lambda device=None: _STREAM,
        "set_stream": lambda stream: None,
        "stream": lambda stream: contextlib.nullcontext(),
        "is_current_stream_capturing": lambda: False,
        "graph_pool_handle": lambda: (0, 0),
        "make_graphed_callables": lambda callables, *args, **kwargs: callables,
        "_exchange_device": lambda device: 0,
        "_maybe_exchange_device": lambda device: 0,
        "Stream": Stream,
        "ExternalStream": Stream,
        "Event": Event,
        "CUDAGraph": Graph,
        "graph": GraphCapture,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    torch._C._cuda_getDevice = lambda: 0
    torch._C._cuda_getCurrentRawStream = lambda device: 0
    torch.cuda.nvtx = SimpleNamespace(
        range_push=lambda text: None,
        range_pop=lambda: None,
        mark=lambda text: None,
        range=lambda *args, **kwargs: contextlib.nullcontext(),
    )
    FakeTensor.data_ptr = _Addresses().of
    torch.Tensor.to = _with_index(torch.Tensor.to)
    torch.Tensor.cuda = lambda tensor, device=None, *args, **kwargs: tensor.to("cuda")
    torch.Tensor.pin_memory = lambda tensor, device=None: tensor
    torch.Tensor.record_stream = lambda tensor, stream: None
    torch.compile = _uncompiled
    return FakeTensorMode(allow_non_fake_inputs=True)


def _install_device_guard() -> None:
    """Let a CPU build of torch index, copy and move CUDA FakeTensors.

    These switch to the tensor's device first, with a guard that only CUDA builds register. The
    guard of the meta device, which does nothing, is entered in its place.
    """
    library = Path(torch.__file__).parent / "lib" / "libc10.so"
    try:
        guards = (ctypes.c_void_p * (_META + 1)).in_dll(ctypes.CDLL(str(library)), _GUARDS)
    except (OSError, ValueError):
        return
    if not guards[_CUDA]:
        guards[_CUDA] = guards[_META]


def _with_index(move: Callable[..., Any]) -> Callable[..., Any]:
    """Tensor.to with "cuda" read as "cuda:0": the stand-in guard knows no current device."""

    def to(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        args = tuple(_indexed(value) for value in args)
        kwargs = {name: _indexed(value) for name, value in kwargs.items()}
        return move(tensor, *args, **kwargs)

    return to


def _indexed(value: Any) -> Any:
    if isinstance(value, str | torch.device) and str(value) == "cuda":
        return torch.device("cuda", 0)
    return value


def _uncompiled(model: Callable[..., Any] | None = None, **_: Any) -> Any:
    """torch.compile that compiles nothing: the operators answer with the same shapes anyway."""
    return (lambda function: function) if model is None else model


class Stream:
    """A stream on which nothing runs."""

    cuda_stream = 0
    stream_id = 0
    device_index = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        self.device = torch.device("cuda", 0)

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for."""

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def record_event(self, event: Any = None) -> Any:
        """An event; nothing is recorded."""
        return event or Event()

    def query(self) -> bool:
        """All work is done."""
        return True

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        return None


class Event:
    """An event that is always over."""

    cuda_event = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        self.device = torch.device("cuda", 0)

    def record(self, stream: Any = None) -> None:
        """Nothing to record."""

    def wait(self, stream: Any = None) -> None:
        """Nothing to wait for."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """It is over."""
        return True

    def elapsed_time(self, end: Any) -> float:
        """One millisecond, whatever ran: it must not be 0, by which someone may divide."""
        return 1.0


class Graph:
    """A CUDA graph that holds nothing: what is captured has run once already, as a dry call."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def capture_begin(self, *_: Any, **__: Any) -> None:
        """Calls inside a capture are dry calls as everywhere."""

    def capture_end(self) -> None:
        """See capture_begin."""

    def replay(self) -> None:
        """Nothing runs."""

    def reset(self) -> None:
        """Nothing to free."""

    def pool(self) -> tuple[int, int]:
        """A handle of no pool."""
        return (0, 0)

    def enable_debug_mode(self) -> None:
        """Nothing to show."""

    def debug_dump(self, path: str) -> None:
        """Nothing to show."""

    def instantiate(self) -> None:
        """Nothing to do."""


class GraphCapture:
    """torch.cuda.graph(...) of such a graph."""

    def __init__(self, cuda_graph: Any, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: Any) -> None:
        return None


_STREAM = Stream()


class _Addresses:
    """Addresses for tensors without memory: one for each storage, the same as long as it lives."""

    def __init__(self) -> None:
        self._of_storage: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._next: Iterator[int] = itertools.count(_FIRST_ADDRESS, _ADDRESS_STEP)

    @property
    def of(self) -> Callable[[FakeTensor], int]:
        """data_ptr() for a class of tensors."""

        def data_ptr(tensor: FakeTensor) -> int:
            storage = tensor.untyped_storage()
            if storage not in self._of_storage:
                self._of_storage[storage] = next(self._next)
            return self._of_storage[storage] + tensor.storage_offset() * tensor.element_size()

        return data_ptr


def _properties(profile: DeviceProfile) -> SimpleNamespace:
    major, minor = profile.capability
    return SimpleNamespace(
        name=profile.device_name,
        major=major,
        minor=minor,
        total_memory=profile.memory,
        multi_processor_count=profile.sms,
        warp_size=32,
        L2_cache_size=profile.l2_cache,
        regs_per_multiprocessor=profile.registers_per_sm,
        max_threads_per_multi_processor=profile.threads_per_sm,
        max_threads_per_block=profile.threads_per_block,
        shared_memory_per_block=48 * 1024,
        shared_memory_per_block_optin=profile.shared_per_block,
        shared_memory_per_multiprocessor=profile.shared_per_sm,
        is_integrated=0,
        is_multi_gpu_board=0,
        pci_bus_id=0,
        pci_device_id=0,
        pci_domain_id=0,
        uuid="GPU-00000000-0000-0000-0000-000000000000",
    )
