"""Recursion without end.

Caught as: CRASH
Evidence: RecursionError
Needs: CPU or GPU
"""

from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Calls itself."""
    return gdn_prefill_forward(*arguments)
