"""Output in float16: the same number of bytes, other bits.

Caught as: BAD_RESULT
Evidence: output has dtype float16, expected bfloat16
Needs: CPU or GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right values in another dtype."""
    output, state = right(*arguments)
    return output.to(torch.float16), state
