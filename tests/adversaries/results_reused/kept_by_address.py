"""Results kept by the addresses of the inputs: the same tensors, so the same answer.

Caught as: WRONG
Needs: CPU or GPU
"""

from right import gdn_prefill_forward as right
from tools import Argument, Result

_kept: dict[tuple[int, ...], Result] = {}


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """A copy of what was computed for tensors that lay where these lie."""
    key = tuple(0 if tensor is None else tensor.data_ptr() for tensor in arguments)
    if key not in _kept:
        output, state = right(*arguments)
        _kept[key] = output.clone(), state.clone()
    output, state = _kept[key]
    return output.clone(), state.clone()
