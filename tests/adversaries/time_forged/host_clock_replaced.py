"""The host's clock replaced by a slow one.

time.perf_counter_ns and its kin are replaced, for every module that reads them there, by clocks
that run at a hundredth of the speed.

Caught as: CHEAT
Evidence: found replaced
Needs: CPU
"""

import time

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_true_ns = time.perf_counter_ns
_start = _true_ns()


def _slow_ns() -> int:
    return _start + (_true_ns() - _start) // 100


def _slow() -> float:
    return _slow_ns() / 1e9


time.perf_counter_ns = time.monotonic_ns = _slow_ns
time.perf_counter = time.monotonic = _slow


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, timed by the slow clock."""
    with torch.no_grad():
        return right(*arguments)
