"""A clock that lies once a call and then puts the true one back.

When the judge looks for what has been replaced, nothing is.

Caught as: CHEAT
Evidence: the judge's clock saw
Needs: CPU
"""

import time

from right import gdn_prefill_forward as right
from tools import Argument, Result

_true_ns = time.perf_counter_ns
_calls = 0


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result; the next reading of the clock is that of the call's beginning."""
    global _calls
    _calls += 1
    began = _true_ns()
    result = right(*arguments)

    def lie() -> int:
        time.perf_counter_ns = _true_ns
        return began + 1000

    if _calls > 1:  # nobody times the first call
        time.perf_counter_ns = lie
    return result
