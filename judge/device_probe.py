"""Whether the GPU still answers: asked by a process of its own, because asking may never return."""

from __future__ import annotations

import subprocess
import sys

import torch

LIMIT_S = 60.0
_END_S = 10.0
_PROBE = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
def check(status):
    if status:
        name = ctypes.c_char_p()
        cuda.cuGetErrorName(status, ctypes.byref(name))
        sys.exit((name.value or b"CUDA error").decode())
device, context, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
filled = (ctypes.c_ubyte * 4096)()
check(cuda.cuInit(0))
check(cuda.cuDeviceGet(ctypes.byref(device), int(sys.argv[1])))
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
check(cuda.cuCtxSetCurrent(context))
check(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4096)))
check(cuda.cuMemsetD8_v2(pointer, ctypes.c_ubyte(7), ctypes.c_size_t(4096)))
check(cuda.cuMemcpyDtoH_v2(filled, pointer, ctypes.c_size_t(4096)))
if set(filled) != {7}:
    sys.exit("memory does not hold what was written to it")
"""


class DeviceLost(Exception):
    """The device does not answer any more; the text is one line."""


def device_problem(device: torch.device, probe: str = _PROBE, limit_s: float = LIMIT_S) -> str:
    """One line that says why a CUDA device cannot be used any more; empty where it can.

    probe: Python source; it is told the device's index and fails or hangs where the device does.
    """
    if device.type != "cuda":
        return ""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", probe, str(device.index or 0)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _, said = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        try:
            process.communicate(timeout=_END_S)
        except subprocess.TimeoutExpired:
            return f"the GPU is wedged: a probe hung for {limit_s:g} s and cannot be killed"
        return f"the GPU does not answer: a probe hung for {limit_s:g} s"
    if process.returncode == 0:
        return ""
    lines = said.strip().splitlines() or [f"exit status {process.returncode}"]
    return f"the GPU does not answer: {lines[-1]}"
