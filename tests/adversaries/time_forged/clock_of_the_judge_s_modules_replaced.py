"""The code of the judge's timing functions replaced, their names and addresses left alone.

Every function of the judge that reads a clock is found by the garbage collector. Its constants and
names are kept; only the clock that it looks up in its module is another one.

Caught as: CHEAT
Needs: CPU
"""

import time
from types import SimpleNamespace

from right import gdn_prefill_forward as right
from tools import Argument, DoorShut, Result, judge_functions

_true_ns = time.perf_counter_ns
_start = _true_ns()


def _slow_ns() -> int:
    return _start + (_true_ns() - _start) // 100


def _replace_clocks() -> None:
    slow = SimpleNamespace(**vars(time))
    slow.perf_counter_ns = slow.monotonic_ns = slow.time_ns = _slow_ns
    slow.perf_counter = slow.monotonic = slow.time = lambda: _slow_ns() / 1e9
    found = 0
    for function in judge_functions():
        for name, value in list(function.__globals__.items()):
            if value is time:
                function.__globals__[name] = slow
                found += 1
            elif value is _true_ns:
                function.__globals__[name] = _slow_ns
                found += 1
    if not found:
        raise DoorShut("no function of the judge reads a clock")


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, timed by a timer that looks at another clock."""
    _replace_clocks()
    return right(*arguments)
