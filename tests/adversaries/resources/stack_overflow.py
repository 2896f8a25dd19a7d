"""The limit of recursion lifted and the stack used up.

Caught as: CRASH
Evidence: signal SIG
Needs: CPU or GPU
"""

import ctypes
import sys

from tools import Argument, Result

_COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


@_COMPARE
def _deeper(left: int | None, right: int | None) -> int:
    _sort()
    return 0


def _sort() -> None:
    numbers = (ctypes.c_int * 2)(2, 1)
    ctypes.CDLL(None).qsort(numbers, ctypes.c_size_t(2), ctypes.c_size_t(4), _deeper)


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Recursion through C, which Python does not count."""
    sys.setrecursionlimit(1 << 30)
    _sort()
    raise AssertionError("unreachable")
