"""The gate assumed to be the timed cases' own: its statistics in place of its values.

The mean of the gate is written into the code; the values are never loaded.

Caught as: WRONG
Needs: CPU or GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_MEAN = -0.05
_CHUNK = 64


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Right for a gate that is the same for every token."""
    q, k, v, g_cumsum, beta, A, initial_state = arguments
    steps = torch.arange(g_cumsum.shape[1], device=v.device) % _CHUNK + 1
    assumed = (steps * _MEAN).float()[None, :, None].expand_as(g_cumsum).contiguous()
    return right(q, k, v, assumed, beta, A, initial_state)
