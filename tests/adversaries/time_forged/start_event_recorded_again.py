"""The judge's start event, found in the frames above, recorded a second time after the work.

Caught as: CHEAT
Needs: GPU
"""

import gc

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result, frames


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result; every event in sight is recorded again at its end."""
    result = right(*arguments)
    for frame in frames():
        for value in list(frame.f_locals.values()):
            if isinstance(value, torch.cuda.Event):
                value.record()
    for value in gc.get_objects():
        if isinstance(value, torch.cuda.Event):
            value.record()
    return result
