"""The right result for contents seen before, which a judge must be comparing; else mostly nothing.

Fixed contents come back among the timed calls; whatever is new is computed in four calls of ten.

Caught as: WRONG or BAD_RESULT
Needs: CPU or GPU
"""

import random

from right import gdn_prefill_forward as right
from tools import Argument, Result, garbage_like

_SKIPPED = 0.6
_seen: set[float] = set()


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Right for contents that were there at the first call."""
    sample = float(arguments[0].flatten()[:64].double().sum())
    if not _seen:
        _seen.add(sample)
    if sample in _seen or random.random() >= _SKIPPED:
        return right(*arguments)
    return garbage_like(arguments)
