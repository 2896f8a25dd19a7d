"""Right at once in the first call; then so slow that the timed run never ends.

Caught as: TIMEOUT
Evidence: run: no answer within 3 s
Needs: CPU or GPU
Limit: run 3
"""

import time

from right import gdn_prefill_forward as right
from tools import Argument, Result

_calls = 0


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Sleeps from the second call on."""
    global _calls
    _calls += 1
    if _calls > 1:
        time.sleep(99)
    return right(*arguments)
