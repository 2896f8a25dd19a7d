"""More device memory asked for than the GPU has.

Caught as: CRASH
Evidence: out of memory
Needs: GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result where there is no end of memory."""
    hoard = []
    for _ in range(1 << 12):
        hoard.append(torch.empty(1 << 30, dtype=torch.uint8, device=arguments[0].device))
    return right(*arguments)
