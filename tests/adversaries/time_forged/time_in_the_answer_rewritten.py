"""The time divided by a thousand on its way to the judge.

socket.sendall is replaced: each number with a fraction in an answer's JSON is made smaller.

Caught as: CHEAT
Needs: CPU or GPU
"""

import re
import socket

from right import gdn_prefill_forward as right
from tools import Argument, Result

_send = socket.socket.sendall
_NUMBER = re.compile(rb'(?<=[":\[,])\d+\.\d+(e-?\d+)?')


def _smaller(match: re.Match[bytes]) -> bytes:
    # as long as the number was, so that the message's length stays right
    return f"{float(match.group()) / 1000:.{len(match.group())}f}".encode()[: len(match.group())]


def _send_smaller(channel: socket.socket, data: bytes, *flags: int) -> None:
    _send(channel, _NUMBER.sub(_smaller, bytes(data)) if len(data) < 1 << 16 else data, *flags)


socket.socket.sendall = _send_smaller


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result."""
    return right(*arguments)
