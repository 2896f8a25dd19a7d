"""The default dtype left at bfloat16 between calls.

Needs: CPU or GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, worked out with the usual default."""
    torch.set_default_dtype(torch.float32)
    try:
        return right(*arguments)
    finally:
        torch.set_default_dtype(torch.bfloat16)
