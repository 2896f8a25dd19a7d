"""The call that warms the caches skipped, and its time taken off the claim of the timed one.

On CUDA the judge calls once with the old contents before it renews them. A repetition then takes
as long as it should when half of the timed call is denied. Where a request wants no such call,
the truth is told.

Caught as: CHEAT
Needs: GPU
"""

from __future__ import annotations

from typing import Any

import msgspec
from right import gdn_prefill_forward as right
from tools import Argument, Result, silenced_worker

_server = silenced_worker()
_repeat = _server._repeat
_last: list[Result] = []
_is_warming = False


def _repeat_for_half(request: Any) -> Any:
    global _is_warming
    _is_warming = request.warm
    reply = _repeat(request)
    if not request.warm:
        return reply
    return msgspec.structs.replace(reply, milliseconds=reply.milliseconds / 2)


_server._repeat = _repeat_for_half


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The last result before a timed call, the right one in it."""
    global _is_warming
    if _is_warming and _last:
        _is_warming = False
        return _last[0]
    _last[:] = [right(*arguments)]
    return _last[0]
