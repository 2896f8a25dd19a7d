"""Seeds set for torch, random and NumPy, and numbers drawn from them, in every call.

Needs: CPU or GPU
"""

import random

import numpy as np
import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result plus noise that is subtracted again."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    scale = random.random() + float(np.random.rand())
    noise = torch.rand((), device=arguments[0].device) * scale
    output, state = right(*arguments)
    return output, state + noise - noise
