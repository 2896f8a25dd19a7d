"""The final state in bfloat16: half the bytes to write.

Caught as: BAD_RESULT
Evidence: final_state has dtype bfloat16, expected float32
Needs: CPU or GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right output with a rounded state."""
    output, state = right(*arguments)
    return output, state.to(torch.bfloat16)
