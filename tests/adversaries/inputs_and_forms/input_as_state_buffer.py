"""The final state written over the initial state.

Caught as: WRONG
Evidence: its input initial_state was changed
Needs: CPU or GPU
"""

from right import gdn_prefill_forward as right
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, its state in initial_state."""
    output, state = right(*arguments)
    return output, state if arguments[6] is None else arguments[6].copy_(state)
