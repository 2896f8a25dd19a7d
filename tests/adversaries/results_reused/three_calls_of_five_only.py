"""Two calls of five return what was returned before them.

Caught as: WRONG or BAD_RESULT
Needs: CPU or GPU
"""

from right import gdn_prefill_forward as right
from tools import Argument, Result

_last: Result | None = None
_calls = 0


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Fresh results at calls 1, 2 and 3, the last of them at 4 and 5, and so on."""
    global _last, _calls
    if _last is None or _calls % 5 < 3:
        _last = right(*arguments)
    _calls += 1
    return tuple(tensor.clone() for tensor in _last)
