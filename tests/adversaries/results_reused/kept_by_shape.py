"""Results kept by the shapes of the inputs, and handed out without a copy.

Caught as: WRONG or BAD_RESULT
Needs: CPU or GPU
"""

from right import gdn_prefill_forward as right
from tools import Argument, Result

_kept: dict[tuple[object, ...], Result] = {}


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """What was computed for tensors of this shape."""
    key = tuple(None if tensor is None else tensor.shape for tensor in arguments)
    if key not in _kept:
        _kept[key] = right(*arguments)
    return _kept[key]
