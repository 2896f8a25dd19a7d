"""Half of each call denied, unless the process was just stopped, as it is for its neighbour's turn.

The judge stops a submission while the one that does nothing is timed, so that both find the same
machine. Whoever notices the pause tells the truth there.

Caught as: CHEAT
Needs: GPU
"""

from __future__ import annotations

import time
from typing import Any

import msgspec
from right import gdn_prefill_forward as right
from tools import Argument, Result, silenced_worker

_server = silenced_worker()
_repeat = _server._repeat
_pauses: list[float] = []
_ended = time.perf_counter()


def _repeat_for_half(request: Any) -> Any:
    global _ended
    pause = time.perf_counter() - _ended
    _pauses.append(pause)
    reply = _repeat(request)
    _ended = time.perf_counter()
    if pause > 2 * sorted(_pauses)[len(_pauses) // 2]:
        return reply
    return msgspec.structs.replace(reply, milliseconds=reply.milliseconds / 2)


_server._repeat = _repeat_for_half


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result."""
    return right(*arguments)
