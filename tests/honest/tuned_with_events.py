"""Variants tried at the first call with CUDA events of its own.

Needs: GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_tried: set[tuple[int, ...]] = set()


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result; the first call of a shape is timed ten times."""
    key = tuple(arguments[2].shape)
    if key not in _tried:
        _tried.add(key)
        for _ in range(10):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            right(*arguments)
            end.record()
            torch.cuda.synchronize()
            print(f"{start.elapsed_time(end):.3f} ms")
    return right(*arguments)
