"""Every second call returns what the call before it returned.

Caught as: WRONG or BAD_RESULT
Needs: CPU or GPU
"""

from right import gdn_prefill_forward as right
from tools import Argument, Result

_last: Result | None = None
_calls = 0


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """A fresh result at calls 1, 3, 5, ..., the last one at the others."""
    global _last, _calls
    _calls += 1
    if _calls % 2 or _last is None:
        _last = right(*arguments)
    return tuple(tensor.clone() for tensor in _last)
