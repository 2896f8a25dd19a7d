"""Right at the first, second and third call, which a judge is likely to look at, zeros later.

Caught as: WRONG
Needs: CPU or GPU
"""

from right import gdn_prefill_forward as right
from tools import Argument, Result, garbage_like

_calls = 0


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Right at first."""
    global _calls
    _calls += 1
    return right(*arguments) if _calls <= 3 else garbage_like(arguments)
