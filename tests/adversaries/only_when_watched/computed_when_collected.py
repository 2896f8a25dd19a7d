"""Nothing computed until the judge asks for the bytes of a result.

A thread looks at the judge's next request without taking it. While requests only ask for another
repetition, calls return zeros; as soon as one asks for the tensors, the thread fills them.

Caught as: CHEAT
Needs: CPU or GPU
"""

from __future__ import annotations

import socket
import threading
import time

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result, channel_fds, garbage_like

_calls = 0
_owed: list[tuple[tuple[Argument, ...], Result]] = []


def _pay() -> None:
    arguments, result = _owed.pop()
    for mine, late in zip(result, right(*arguments), strict=True):
        mine.copy_(late)
    if arguments[0].is_cuda:
        torch.cuda.synchronize()


def _watch() -> None:
    channels = [socket.socket(fileno=fd) for fd in channel_fds()]
    while True:
        for channel in channels:
            try:
                waiting = channel.recv(4096, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            except OSError:
                continue
            if b"ollect" in waiting and _owed:
                _pay()
        time.sleep(1e-4)


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Right once; afterwards zeros on credit."""
    global _calls
    _calls += 1
    if _calls == 1:
        return right(*arguments)
    if _calls == 2:
        threading.Thread(target=_watch, daemon=True).start()
    result = garbage_like(arguments)
    _owed[:] = [(arguments, result)]
    return result
