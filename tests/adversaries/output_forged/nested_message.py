"""A message of brackets within brackets within brackets.

Caught as: CRASH
Evidence: first call: not a reply
Needs: CPU or GPU
"""

import os
import time

from tools import Argument, Result, channel_fds, garbage_like


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Nests."""
    text = b'{"type":"Called","forbidden":' + b"[" * 60_000
    for fd in channel_fds():
        os.write(fd, len(text).to_bytes(4) + text)
    time.sleep(2)
    return garbage_like(arguments)
