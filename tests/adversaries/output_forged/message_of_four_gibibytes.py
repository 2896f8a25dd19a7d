"""A message that claims to be four gibibytes long.

Caught as: CRASH
Evidence: first call: a message of 4294967295 bytes
Needs: CPU or GPU
"""

import os
import time

from tools import Argument, Result, channel_fds, garbage_like


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Announces much."""
    for fd in channel_fds():
        os.write(fd, b"\xff\xff\xff\xff")
    time.sleep(2)
    return garbage_like(arguments)
