"""The timer's own local variable, the time at the start, rewritten from inside the call.

The submission walks up the stack to the frame that called it, finds the integer that is a recent
reading of the clock, and writes the present time in its place.

Caught as: CHEAT
Needs: CPU
"""

import ctypes
import time
from types import FrameType

from right import gdn_prefill_forward as right
from tools import Argument, Result, frames

_MINUTE_NS = 60 * 10**9


def _rewrite(frame: FrameType, now: int) -> None:
    variables = frame.f_locals
    for name, value in list(variables.items()):
        if type(value) is int and now - _MINUTE_NS < value < now:
            variables[name] = now
            # before Python 3.13, f_locals is a copy that has to be written back
            write_back = getattr(ctypes.pythonapi, "PyFrame_LocalsToFast", None)
            if write_back is not None:
                write_back(ctypes.py_object(frame), ctypes.c_int(0))


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, with the start of the clock moved to its end."""
    result = right(*arguments)
    now = time.perf_counter_ns()
    for frame in frames():
        _rewrite(frame, now)
    return result
