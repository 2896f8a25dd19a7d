"""Full precision in the first call; operands of eight bits in all that are timed.

Caught as: WRONG
Needs: CPU or GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_calls = 0


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Right once, roughly right later."""
    global _calls
    _calls += 1
    if _calls == 1:
        return right(*arguments)
    *operands, g_cumsum, beta, A, initial_state = arguments
    rounded = [tensor.to(torch.float8_e4m3fn).to(tensor.dtype) for tensor in operands]
    return right(*rounded, g_cumsum, beta, A, initial_state)
