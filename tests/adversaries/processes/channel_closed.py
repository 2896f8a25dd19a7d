"""The channel to the judge closed, the process alive.

Caught as: CRASH
Evidence: closed its channel
Needs: CPU or GPU
"""

import os
import time

from tools import Argument, Result, channel_fds, garbage_like


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Hangs up."""
    for fd in channel_fds():
        os.close(fd)
    time.sleep(60)
    return garbage_like(arguments)
