"""An answer dripped out one byte a second, so that the judge always has something to read.

Caught as: TIMEOUT
Evidence: first call: no answer within 3 s
Needs: CPU or GPU
Limit: first_call 3
"""

import os
import time

from tools import Argument, Result, channel_fds


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """A message of 60000 bytes, slowly."""
    channel = channel_fds()[0]
    os.write(channel, (60000).to_bytes(4))
    while True:
        os.write(channel, b" ")
        time.sleep(0.5)
