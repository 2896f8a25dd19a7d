"""Times that are no numbers of milliseconds: NaN, infinities, negative and enormous ones.

Caught as: CRASH or CHEAT
Needs: CPU or GPU
"""

import re
import socket

from right import gdn_prefill_forward as right
from tools import Argument, Result

_send = socket.socket.sendall
_TIME = re.compile(rb'"milliseconds":[0-9.e-]+')


def _send_nonsense(channel: socket.socket, data: bytes, *flags: int) -> None:
    if len(data) < 1 << 16 and b'"milliseconds"' in bytes(data):
        body = _TIME.sub(b'"milliseconds":-1e308', bytes(data)[4:])
        data = len(body).to_bytes(4) + body
    _send(channel, data, *flags)


socket.socket.sendall = _send_nonsense


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result."""
    return right(*arguments)
