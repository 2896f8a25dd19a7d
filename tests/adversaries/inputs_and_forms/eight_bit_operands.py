"""Operands rounded to the eight bits of float8_e4m3fn: twice the speed of the tensor cores.

Caught as: WRONG
Needs: CPU or GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Right but for the rounding of q, k and v."""
    *operands, g_cumsum, beta, A, initial_state = arguments
    rounded = [tensor.to(torch.float8_e4m3fn).to(tensor.dtype) for tensor in operands]
    return right(*rounded, g_cumsum, beta, A, initial_state)
