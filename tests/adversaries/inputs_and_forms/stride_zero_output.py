"""An output of one row that claims to be all rows: stride zero, almost nothing to write.

Caught as: WRONG
Needs: CPU or GPU
"""

from right import gdn_prefill_forward as right
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The first token's output for every token."""
    output, state = right(*arguments)
    return output[:, :1].expand_as(output), state
