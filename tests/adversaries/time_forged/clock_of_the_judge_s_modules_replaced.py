"""The clock replaced in the judge's own modules, Python's left alone.

Every function of the judge that reads a clock is found by the garbage collector; the module that
it looks its clock up in is given another one.

Caught as: CHEAT
Evidence: found replaced: judge.child.calls.time
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
    modules = [function.__globals__ for function in judge_functions()]
    clocks = [(names, name) for names in modules for name in names if names[name] is time]
    if not clocks:
        raise DoorShut("no module of the judge reads a clock")
    for names, name in clocks:
        names[name] = slow


_replace_clocks()


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, timed by a timer that looks at another clock."""
    return right(*arguments)
