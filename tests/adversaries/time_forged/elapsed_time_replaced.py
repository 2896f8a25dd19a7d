"""The method torch.cuda.Event.elapsed_time replaced, the class left alone.

Caught as: CHEAT
Evidence: found replaced
Needs: GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_true = torch.cuda.Event.elapsed_time


def _tenth(start: torch.cuda.Event, end: torch.cuda.Event) -> float:
    return _true(start, end) / 10


torch.cuda.Event.elapsed_time = _tenth


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result."""
    return right(*arguments)
