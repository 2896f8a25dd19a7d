"""The machine code of libc's clock_gettime overwritten by one that runs at a hundredth.

No Python object is touched: every clock of this process, Python's and PyTorch's, is slow.

Caught as: CHEAT
Needs: CPU
"""

import ctypes
import platform

from right import gdn_prefill_forward as right
from tools import Argument, DoorShut, Result

# the system call itself, then nanoseconds / 100 back into seconds and nanoseconds
_SLOW = bytes.fromhex(
    "56"  # push rsi
    "b8e4000000"  # mov eax, 228
    "0f05"  # syscall
    "5e"  # pop rsi
    "488b06"  # mov rax, [rsi]
    "4869c000ca9a3b"  # imul rax, rax, 1000000000
    "48034608"  # add rax, [rsi + 8]
    "31d2"  # xor edx, edx
    "b964000000"  # mov ecx, 100
    "48f7f1"  # div rcx
    "31d2"  # xor edx, edx
    "b900ca9a3b"  # mov ecx, 1000000000
    "48f7f1"  # div rcx
    "488906"  # mov [rsi], rax
    "48895608"  # mov [rsi + 8], rdx
    "31c0"  # xor eax, eax
    "c3"  # ret
)
_PAGE = 4096
_READ_WRITE_EXECUTE = 7


def _overwrite() -> None:
    if platform.machine() != "x86_64":
        raise DoorShut("written for x86-64")
    libc = ctypes.CDLL(None, use_errno=True)
    address = ctypes.cast(libc.clock_gettime, ctypes.c_void_p).value
    page = address // _PAGE * _PAGE
    if libc.mprotect(ctypes.c_void_p(page), 2 * _PAGE, _READ_WRITE_EXECUTE) != 0:
        raise DoorShut("code cannot be made writable")
    ctypes.memmove(address, _SLOW, len(_SLOW))


_overwrite()


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, timed by slow clocks."""
    return right(*arguments)
