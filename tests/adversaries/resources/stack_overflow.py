"""The limit of recursion lifted and the stack used up.

Caught as: CRASH
Evidence: signal SIG
Needs: CPU or GPU
"""

import sys

from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """A million filters, each asking the next: recursion in C, which Python does not count."""
    sys.setrecursionlimit(1 << 30)
    numbers = iter(())
    for _ in range(1 << 20):
        numbers = filter(None, numbers)
    next(numbers)
    raise AssertionError("unreachable")
