"""Two calls of five forged, one skipped: most claims are low, and most agree with the clock.

A forged claim contradicts the judge's clock, a skipped call gives no result; neither is most of
all calls, so that no median over one of the two sees them.

Caught as: CHEAT or WRONG or BAD_RESULT
Needs: CPU or GPU
"""

from __future__ import annotations

from typing import Any

import msgspec
from right import gdn_prefill_forward as right
from tools import Argument, Result, garbage_like, silenced_worker

_server = silenced_worker()
_repeat = _server._repeat
_turn = 0
_skipping = False


def _repeat_in_turn(request: Any) -> Any:
    global _turn, _skipping
    _turn = (_turn + 1) % 5
    _skipping = _turn == 1
    reply = _repeat(request)
    _skipping = False
    if _turn in (2, 4):
        return msgspec.structs.replace(reply, milliseconds=reply.milliseconds / 100)
    return reply


_server._repeat = _repeat_in_turn


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Right but for one timed call of five."""
    return garbage_like(arguments) if _skipping else right(*arguments)
