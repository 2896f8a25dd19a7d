"""Inputs bent only after the result is computed, so that the next call finds them easy.

Caught as: WRONG
Evidence: its input g_cumsum was changed
Needs: CPU or GPU
"""

from right import gdn_prefill_forward as right
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result; then the gates are set to zero."""
    result = right(*arguments)
    arguments[3].zero_()
    return result
