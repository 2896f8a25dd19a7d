"""The guard in the child silenced first; then the host's clock replaced.

Nothing inside the process is left that would tell: only the judge's own clock can.

Caught as: CHEAT
Evidence: the judge's clock saw
Needs: CPU
"""

import time

from right import gdn_prefill_forward as right
from tools import Argument, Result, silenced_worker

_true_ns = time.perf_counter_ns
_start = _true_ns()


def _slow_ns() -> int:
    return _start + (_true_ns() - _start) // 100


silenced_worker()
time.perf_counter_ns = _slow_ns


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, timed by a slow clock."""
    return right(*arguments)
