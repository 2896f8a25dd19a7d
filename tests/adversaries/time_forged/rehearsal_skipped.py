"""The rehearsal skipped, and half of the timed call denied.

On CUDA a call with the old contents comes before the judge hands over a seed. Where its clock ran
over both, a repetition would take as long as it should.

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
_memory = _server._memory
_repeat, _wait_for_seed = _server._repeat, _memory.wait_for_seed
_last: list[Result] = []
_is_rehearsal = False


def _wait() -> int:
    global _is_rehearsal
    _is_rehearsal = False
    return _wait_for_seed()


def _repeat_for_half(request: Any) -> Any:
    global _is_rehearsal
    _is_rehearsal = request.rehearsed
    reply = _repeat(request)
    return msgspec.structs.replace(reply, milliseconds=reply.milliseconds / 2)


_memory.wait_for_seed = _wait
_server._repeat = _repeat_for_half


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The last result in a rehearsal, the right one in a timed call."""
    if _is_rehearsal and _last:
        return _last[0]
    _last[:] = [right(*arguments)]
    return _last[0]
