"""A call that never returns.

Caught as: TIMEOUT
Evidence: first call: no answer within 3 s
Needs: CPU or GPU
Limit: first_call 3
"""

from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Runs for ever."""
    while True:
        pass
