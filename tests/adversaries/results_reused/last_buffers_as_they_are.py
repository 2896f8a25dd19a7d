"""The buffers of the first call returned again as they are, in the hope that nobody wrote to them.

Caught as: BAD_RESULT or WRONG
Needs: CPU or GPU
"""

from right import gdn_prefill_forward as right
from tools import Argument, Result

_buffers: Result | None = None


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The tensors of the first call."""
    global _buffers
    if _buffers is None:
        _buffers = right(*arguments)
    return _buffers
