"""A tuple whose class has a class of its own: asked for __iter__ it computes, and answers tuple's.

Caught as: BAD_RESULT
Evidence: expected a tuple
Needs: CPU or GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_late: list[tuple[Argument, ...]] = []


class _Asked(type):
    """Runs when the judge looks at an attribute of the class."""

    def __getattribute__(cls, name: str) -> object:
        if name == "__iter__" and _late:
            result, arguments = _late.pop()
            for mine, true in zip(result, right(*arguments), strict=True):
                mine.copy_(true)
        return super().__getattribute__(name)


class _Lazy(tuple, metaclass=_Asked):
    """Reads as a tuple does."""


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Empty tensors, filled when they are looked at, after the clock has stopped."""
    v = arguments[2]
    state = torch.empty((v.shape[0], v.shape[2], 128, 128), dtype=torch.float32, device=v.device)
    result = (torch.empty_like(v), state)
    _late.append((result, arguments))
    return _Lazy(result)
