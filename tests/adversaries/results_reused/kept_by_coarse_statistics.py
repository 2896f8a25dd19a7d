"""Results kept by a few rounded means of the inputs, which tell one draw from another badly.

Caught as: WRONG
Needs: CPU or GPU
"""

from right import gdn_prefill_forward as right
from tools import Argument, Result

_kept: dict[tuple[float, ...], Result] = {}


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """A copy of what was computed for inputs with the same means."""
    key = tuple(
        0.0 if tensor is None else round(float(tensor.float().mean()), 1) + 0.0
        for tensor in arguments
    )
    if key not in _kept:
        output, state = right(*arguments)
        _kept[key] = output.clone(), state.clone()
    output, state = _kept[key]
    return output.clone(), state.clone()
