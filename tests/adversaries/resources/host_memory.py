"""More of the host's memory taken than there is for one child.

Caught as: CRASH
Evidence: more than the limit of 2.0 GiB
Needs: CPU
Limit: memory 2
"""

import time

from tools import Argument, Result, garbage_like


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Fills memory, then waits."""
    hoard = [bytearray(b"x" * (1 << 26)) for _ in range(40)]
    time.sleep(60 * len(hoard))
    return garbage_like(arguments)
