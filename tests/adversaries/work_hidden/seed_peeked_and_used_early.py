"""The request held back until the work for its seed is done.

socket.recv is replaced. When a request with a seed arrives, its inputs are made by the judge's own
functions and the result is computed; only then does the worker see the request and start its clock.

Caught as: CHEAT
Needs: CPU
"""

from __future__ import annotations

import re
import socket

from right import gdn_prefill_forward as right
from tools import Argument, Result, judge_function, worker

_receive = socket.socket.recv
_SEED = re.compile(rb'"seed":(\d+)')
_server: object = None
_case: object = None
_ready: Result | None = None
_busy = False


def _work(seed: int) -> Result:
    server = _server
    device = server._device
    inputs = judge_function("make_inputs")(_case, seed, device)
    g_cumsum, A = server._preprocess(inputs.k, inputs.raw_g, inputs.beta)
    return right(inputs.q, inputs.k, inputs.v, g_cumsum, inputs.beta, A, inputs.initial_state)


def _receive_late(channel: socket.socket, *args: int) -> bytes:
    global _ready, _busy
    data = _receive(channel, *args)
    found = _SEED.search(data)
    if found and _case is not None and not _busy and b'"case"' not in data:
        _busy = True
        _ready = _work(int(found.group(1)))
        _busy = False
    return data


socket.socket.recv = _receive_late


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """What was computed while the request was held back."""
    global _server, _case, _ready
    if _server is None:
        _server = worker()
        _case = _server._case
    if _ready is None:
        return right(*arguments)
    result, _ready = _ready, None
    return result
