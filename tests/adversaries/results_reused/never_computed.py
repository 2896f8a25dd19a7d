"""Nothing computed: buffers as the allocator hands them out, which held the right result before.

Caught as: WRONG or BAD_RESULT
Needs: CPU or GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_calls = 0


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result once; afterwards memory that may still hold it."""
    global _calls
    _calls += 1
    if _calls == 1:
        return right(*arguments)
    v = arguments[2]
    batch, _, heads, size = v.shape
    return torch.empty_like(v), torch.empty((batch, heads, size, size), device=v.device)
