"""A sparse output that stores nothing.

Caught as: BAD_RESULT
Evidence: output has layout sparse_coo, expected strided
Needs: CPU or GPU
"""

import torch
from tools import Argument, Result, garbage_like


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """No elements at all."""
    output, state = garbage_like(arguments)
    empty = torch.sparse_coo_tensor(size=output.shape, dtype=output.dtype, device=output.device)
    return empty, state
