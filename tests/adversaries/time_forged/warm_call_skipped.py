"""The call that warms the caches skipped, and half of the timed one denied.

On CUDA the judge calls once with the old contents before it renews them. Where its clock ran over
both, a repetition would take as long as it should.

Caught as: CHEAT
Evidence: the judge's clock saw
Needs: GPU
"""

from __future__ import annotations

from typing import Any

import msgspec
from right import gdn_prefill_forward as right
from tools import Argument, Result, silenced_worker

_server = silenced_worker()
_repeat = _server._repeat
_warm = _server._warm
_last: list[Result] = []
_is_warming = False


def _warm_nothing() -> Any:
    global _is_warming
    _is_warming = True
    try:
        return _warm()
    finally:
        _is_warming = False


def _repeat_for_half(request: Any) -> Any:
    reply = _repeat(request)
    return msgspec.structs.replace(reply, milliseconds=reply.milliseconds / 2)


_server._warm = _warm_nothing
_server._repeat = _repeat_for_half


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The last result before a timed call, the right one in it."""
    if _is_warming and _last:
        return _last[0]
    _last[:] = [right(*arguments)]
    return _last[0]
