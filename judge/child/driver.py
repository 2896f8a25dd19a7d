"""Inside the child: calls of the CUDA driver that keep Python's lock.

PyTorch lets go of the lock in most of its functions: another thread of the submission can then take
its turn, and where it does not mean to cheat it still holds the judge's next step up.
"""

from __future__ import annotations

import ctypes

import torch

_LIBRARY = "libcuda.so.1"
_HANDLE, _ADDRESS = ctypes.c_void_p, ctypes.c_uint64


def _function(name: str, *arguments: type) -> ctypes._CFuncPtr | None:
    """A function of the driver, None where there is none."""
    try:
        function = getattr(ctypes.PyDLL(_LIBRARY), name)
    except OSError:
        return None
    function.argtypes = arguments
    return function


_record_event = _function("cuEventRecord", _HANDLE, _HANDLE)
_copy_bytes = _function("cuMemcpyDtoDAsync_v2", _ADDRESS, _ADDRESS, ctypes.c_size_t, _HANDLE)


class Driver:
    """Work for a stream, given by its handle. Its methods raise RuntimeError where CUDA refuses."""

    def record(self, event: torch.cuda.Event, stream: int) -> None:
        """Record an event that was recorded before: PyTorch makes it at the first time."""
        _check(_record_event(event.cuda_event, stream))

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        """Copy bytes between two addresses on the device."""
        _check(_copy_bytes(target, source, size, stream))


def _check(status: int) -> None:
    if status != 0:
        torch.cuda.synchronize()  # says in PyTorch's words what went wrong before, if anything did
        raise RuntimeError(f"CUDA error: the driver refused a step of the judge's ({status})")
