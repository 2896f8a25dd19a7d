"""Six calls of ten skipped at random: the median is that of a call that does nothing.

Audits at moments that nobody foresees meet a skipped call only sometimes; they have to look at
the quick calls.

Caught as: WRONG or BAD_RESULT
Needs: CPU or GPU
"""

import random

from right import gdn_prefill_forward as right
from tools import Argument, Result, garbage_like

_SKIPPED = 0.6
_calls = 0


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Right in four calls of ten, and in the first."""
    global _calls
    _calls += 1
    if _calls > 1 and random.random() < _SKIPPED:
        return garbage_like(arguments)
    return right(*arguments)
