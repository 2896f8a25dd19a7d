"""Only the last chunk computed anew, from a state kept from the first call.

Caught as: WRONG
Needs: CPU or GPU
"""

from right import gdn_prefill_forward as right
from tools import Argument, Result

_CHUNK = 64
_kept: dict[tuple[int, ...], Result] = {}


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The result of the first call with its last chunk replaced."""
    q, k, v, g_cumsum, beta, A, _ = arguments
    key = tuple(v.shape)
    if key not in _kept:
        _kept[key] = tuple(tensor.clone() for tensor in right(*arguments))
        return right(*arguments)
    output, state = (tensor.clone() for tensor in _kept[key])
    start = (v.shape[1] - 1) // _CHUNK * _CHUNK
    tail = (tensor[:, start:].contiguous() for tensor in (q, k, v, g_cumsum, beta, A))
    last_output, last_state = right(*tail, state)
    output[:, start:] = last_output
    return output, last_state
