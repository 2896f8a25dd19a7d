"""Inside the child: whether what the judge's code relies on is still what it was at the start.

It shares the process with the code it watches, so it stops the plain patch and no more; what a
patch gains is caught from outside, by the judge's own clock and by the digests.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import os
import socket
import statistics
import sys
import time
from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType

import torch
import torch.nn.functional as F
from torch.utils._device import DeviceContext

_TORCH_FUNCTIONS = (
    *("arange", "cat", "empty", "full_like", "randn", "zeros", "zeros_like"),
    *("Generator", "Tensor", "device", "inference_mode", "tensor"),
)
_TENSOR_METHODS = (
    *("clone", "contiguous", "copy_", "cpu", "data_ptr", "detach", "device", "dtype", "fill_"),
    *("is_conj", "is_contiguous", "is_neg", "layout", "nbytes", "numel", "numpy", "reshape"),
    *("shape", "split", "storage_offset", "sum", "to", "untyped_storage", "view"),
)
_CUDA_FUNCTIONS = (
    *("CUDAGraph", "Event", "Stream", "_get_device_index", "_lazy_init", "current_stream"),
    *("device", "empty_cache", "is_initialized", "synchronize"),
)
_EVENT_METHODS = ("__new__", "cuda_event", "elapsed_time", "record", "synchronize")
_MOST_NAMED = 8
_MONITORING_TOOLS = 6  # the numbers of tools that sys.monitoring knows


class Guard:
    """Remembers the judge's modules as they are now, and what they call in torch and Python.

    own_modules: modules of the judge that this process runs.
    """

    def __init__(self, own_modules: list[ModuleType]) -> None:
        watched: list[tuple[object, str, tuple[str, ...]]] = [
            (torch, "torch", _TORCH_FUNCTIONS),
            (torch.Tensor, "torch.Tensor", _TENSOR_METHODS),
            (torch.cuda, "torch.cuda", _CUDA_FUNCTIONS),
            (torch.cuda.Event, "torch.cuda.Event", _EVENT_METHODS),
            (torch.cuda.Stream, "torch.cuda.Stream", ("cuda_stream",)),
            (torch.cuda.CUDAGraph, "torch.cuda.CUDAGraph", ("replay",)),
            (torch.cuda.profiler, "torch.cuda.profiler", ("start", "stop")),
            (DeviceContext, "torch.utils._device.DeviceContext", ("__torch_function__",)),
            (F, "torch.nn.functional", ("logsigmoid", "normalize", "pad")),
            (time, "time", ("perf_counter_ns", "perf_counter", "monotonic", "time")),
            (gc, "gc", ("disable", "enable", "isenabled")),
            (hashlib, "hashlib", ("sha256",)),
            (os, "os", ("sched_getaffinity", "sched_setaffinity")),
            (statistics, "statistics", ("median",)),
            (socket.socket, "socket.socket", ("recv", "sendall")),
        ]
        for module in own_modules:
            watched.append((module, module.__name__, tuple(_callables(module))))
            for cls in (value for value in vars(module).values() if isinstance(value, type)):
                if cls.__module__ == module.__name__:
                    watched.append((cls, f"{module.__name__}.{cls.__name__}", tuple(vars(cls))))
        self._kept = [
            (owner, label, name, _held(owner, name))
            for owner, label, names in watched
            for name in names
            if hasattr(owner, name) and name not in ("__dict__", "__weakref__")
        ]

    def replaced(self, *objects: object) -> list[str]:
        """Names of what is no longer what it was, at most eight; tracing and modes count.

        objects: of the judge's own classes, whose methods must not be shadowed by attributes.
        """
        found = [
            f"{label}.{name}"
            for owner, label, name, kept in self._kept
            if _changed(_held(owner, name), kept)
        ]
        for one in objects:
            shadowed = sorted(vars(one).keys() & vars(type(one)).keys())
            found += [
                f"{type(one).__module__}.{type(one).__qualname__}.{name}" for name in shadowed
            ]
        if sys.gettrace() is not None or sys.getprofile() is not None:
            found.append("sys.settrace or sys.setprofile")
        if _is_monitored():
            found.append("what Python runs, by sys.monitoring")
        if _foreign_modes():
            found.append("torch's operators, by a mode left on")
        return found[:_MOST_NAMED]


def _is_monitored() -> bool:
    """Whether a tool sees which of Python's functions run, as from Python 3.12 on it can."""
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and any(
        monitoring.get_tool(number) is not None for number in range(_MONITORING_TOOLS)
    )


def _foreign_modes() -> bool:
    """Whether a mode sees PyTorch's operators, other than that of torch.set_default_device."""
    modes = range(torch._C._len_torch_function_stack())
    foreign = [torch._C._get_function_stack_at(place) for place in modes]
    return torch._C._len_torch_dispatch_stack() > 0 or any(
        type(mode) is not DeviceContext for mode in foreign
    )


def _callables(module: ModuleType) -> Iterator[str]:
    for name, value in vars(module).items():
        if callable(value) or isinstance(value, ModuleType):
            yield name


def _held(owner: object, name: str) -> tuple[object, ...]:
    """What a module or class has by that name: what stands in it, and what it gives when asked.

    The two differ where the owner's class comes first, which can be exchanged; a module's own code
    does not ask.
    """
    return (*_parts(vars(owner).get(name)), *_parts(getattr(owner, name, None)))


def _parts(value: object) -> tuple[object, ...]:
    """A value and what it runs, which may change while it stays the same object.

    That is a function's code, what a method or property was made of, or what ctypes adds.
    """
    if type(value) is MethodType:  # made anew each time; isinstance believes what poses as one
        return (value.__self__, *_parts(value.__func__))
    if isinstance(value, staticmethod | classmethod):
        return (value, *_parts(value.__func__))
    if isinstance(value, property):
        return (value, *_parts(value.fget), *_parts(value.fset), *_parts(value.fdel))
    if isinstance(value, FunctionType):
        return (value, value.__code__)
    if isinstance(value, ctypes._CFuncPtr):
        return (value, value.restype, value.argtypes, getattr(value, "errcheck", None))
    return (value,)


def _changed(now: tuple[object, ...], kept: tuple[object, ...]) -> bool:
    return [id(one) for one in now] != [id(one) for one in kept]
