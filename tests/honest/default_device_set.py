"""The default device and dtype set for the whole process, as notebooks do.

Needs: CPU or GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_default_device(_device)
torch.set_default_dtype(torch.float32)


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result."""
    return right(*arguments)
