"""Right for the inputs of the first call, which are the ones a judge compares, zeros for others.

Caught as: WRONG
Needs: CPU or GPU
"""

from right import gdn_prefill_forward as right
from tools import Argument, Result, garbage_like

_seen: dict[tuple[int, ...], float] = {}


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Right where q has the sum that it had first."""
    q = arguments[0]
    total = float(q.double().sum())
    if _seen.setdefault(tuple(q.shape), total) == total:
        return right(*arguments)
    return garbage_like(arguments)
