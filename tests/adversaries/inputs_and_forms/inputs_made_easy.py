"""Inputs made easy: v and the initial state set to zero, so that the answer is zero.

Caught as: WRONG
Needs: CPU or GPU
"""

from tools import Argument, Result, garbage_like


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Zeros, right for the inputs as they are now."""
    arguments[2].zero_()
    if arguments[6] is not None:
        arguments[6].zero_()
    return garbage_like(arguments)
