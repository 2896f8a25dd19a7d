"""The output written over the input v: half the memory, and the caller's tensor lost.

Caught as: WRONG
Evidence: its input v was changed
Needs: CPU or GPU
"""

from right import gdn_prefill_forward as right
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, in v."""
    output, state = right(*arguments)
    return arguments[2].copy_(output), state
