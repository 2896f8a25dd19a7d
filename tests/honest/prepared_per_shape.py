"""Constants prepared once a shape and kept: masks, indices, a plan.

Needs: CPU or GPU
"""

from functools import cache

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result


@cache
def _mask(size: int, device: torch.device) -> torch.Tensor:
    return torch.ones(size, size, dtype=torch.bool, device=device).triu(1)


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result; the mask is looked at."""
    assert _mask(64, arguments[0].device).shape == (64, 64)
    return right(*arguments)
