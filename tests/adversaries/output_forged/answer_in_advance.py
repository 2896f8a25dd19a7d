"""An answer written to the channel before the worker gives its own: the judge reads one too many.

Caught as: CRASH or CHEAT
Needs: CPU or GPU
"""

import os

from right import gdn_prefill_forward as right
from tools import Argument, Result, channel_fds

_ANSWER = b'{"type":"Called","tilelang_launches":1,"forbidden":[]}'


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, and an answer more than was asked for."""
    for fd in channel_fds():
        os.write(fd, len(_ANSWER).to_bytes(4) + _ANSWER)
    return right(*arguments)
