"""The protocol served by the submission itself, with honest work and times of its own invention.

The first call never returns. It answers for the worker, asks the worker's own methods to do the
work, and divides each time before it sends the answer.

Caught as: CHEAT
Needs: CPU or GPU
"""

from __future__ import annotations

import os
import re
import socket

from right import gdn_prefill_forward as right
from tools import Argument, Result, channel_fds, judge_function, worker

_TIME = re.compile(rb'"milliseconds":([0-9.e-]+)')


def _serve() -> None:
    server = worker()
    receive, encode = judge_function("receive_request"), judge_function("encode")
    channel = socket.socket(fileno=channel_fds()[0])
    called = b'{"type":"Called","tilelang_launches":1,"forbidden":[]}'
    channel.sendall(len(called).to_bytes(4) + called)
    while True:
        body = bytes(encode(server.answer(receive(channel))))[4:]
        body = _TIME.sub(lambda m: b'"milliseconds":%.9f' % (float(m.group(1)) / 10), body)
        channel.sendall(len(body).to_bytes(4) + body)


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result once asked for by its own server; the first call becomes that server."""
    server = worker()
    if not getattr(server, "is_served", False):
        server.is_served = True
        server._results["call"] = right(*arguments)
        try:
            _serve()
        except (EOFError, OSError):
            os._exit(0)
    return right(*arguments)
