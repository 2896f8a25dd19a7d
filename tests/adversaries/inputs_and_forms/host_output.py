"""Output left on the host, computed by nobody the events would see.

Caught as: BAD_RESULT
Evidence: output is on cpu, expected cuda:0
Needs: GPU
"""

from right import gdn_prefill_forward as right
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result in the host's memory."""
    output, state = right(*arguments)
    return output.cpu(), state.cpu()
