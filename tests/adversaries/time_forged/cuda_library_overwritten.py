"""The machine code of cudaEventElapsedTime overwritten: it always says 0.05 ms.

No Python object is touched.

Caught as: CHEAT
Needs: GPU
"""

import ctypes
import platform
import struct
from pathlib import Path

import torch
from right import gdn_prefill_forward as right
from tools import Argument, DoorShut, Result

_MILLISECONDS = 0.05
_PAGE = 4096
_READ_WRITE_EXECUTE = 7
# mov dword [rdi], milliseconds; xor eax, eax; ret
_CONSTANT = b"\xc7\x07" + struct.pack("<f", _MILLISECONDS) + b"\x31\xc0\xc3"


def _overwrite() -> None:
    if platform.machine() != "x86_64":
        raise DoorShut("written for x86-64")
    paths = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
    libraries = [path for path in paths if "libcudart" in path]
    if not libraries:
        raise DoorShut("found no libcudart")
    libc = ctypes.CDLL(None)
    # CUDA 13 calls the second name
    names = ("cudaEventElapsedTime", "cudaEventElapsedTime_v2")
    functions = [getattr(ctypes.CDLL(path), name, None) for path in libraries for name in names]
    for function in filter(None, functions):
        address = ctypes.cast(function, ctypes.c_void_p).value
        page = ctypes.c_void_p(address // _PAGE * _PAGE)
        if libc.mprotect(page, 2 * _PAGE, _READ_WRITE_EXECUTE) != 0:
            raise DoorShut("code cannot be made writable")
        ctypes.memmove(address, _CONSTANT, len(_CONSTANT))


torch.cuda.init()
_overwrite()


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, timed by a constant."""
    return right(*arguments)
