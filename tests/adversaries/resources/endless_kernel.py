"""A kernel that keeps the GPU busy for hours.

Caught as: TIMEOUT
Evidence: first call: no answer within 10 s
Needs: GPU
Limit: first_call 10
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, after 10¹³ cycles."""
    torch.cuda._sleep(10**13)
    return right(*arguments)
