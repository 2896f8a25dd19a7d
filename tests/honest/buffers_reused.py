"""One pair of result buffers for all calls of a shape, overwritten each time.

Needs: CPU or GPU
"""

from right import gdn_prefill_forward as right
from tools import Argument, Result

_buffers: dict[tuple[int, ...], Result] = {}


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, where the last one lay."""
    result = right(*arguments)
    kept = _buffers.setdefault(tuple(arguments[2].shape), result)
    for mine, fresh in zip(kept, result, strict=True):
        mine.copy_(fresh)
    return kept
