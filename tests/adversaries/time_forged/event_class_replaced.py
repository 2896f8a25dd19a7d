"""torch.cuda.Event replaced by a class that divides what it measured by ten.

Caught as: CHEAT
Evidence: found replaced
Needs: GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_Event = torch.cuda.Event


class _QuickEvent(_Event):
    def elapsed_time(self, end_event: torch.cuda.Event) -> float:
        return super().elapsed_time(end_event) / 10


torch.cuda.Event = torch.cuda.streams.Event = _QuickEvent


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result."""
    return right(*arguments)
