"""The seed held back until its work is done.

The guard is silenced and the method shadowed by which the worker waits for a seed: inputs of the
submission's own making and their result come first, and only then the worker learns the seed and
starts its clock.

Caught as: CHEAT
Evidence: the judge's clock saw
Needs: CPU or GPU
"""

from __future__ import annotations

from typing import Any

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result, silenced_worker

_server = silenced_worker()
_memory = _server._memory
_repeat, _wait = _server._repeat, _memory.wait_for_seed
_ready: list[Result] = []
_gate: str | None = None


def _repeat_and_note(request: Any) -> Any:
    global _gate
    _gate = request.gate
    return _repeat(request)


def _wait_and_work() -> int:
    seed = _wait()
    if _gate is None:
        generator = torch.Generator(device=_server._device).manual_seed(seed)
        _ready[:] = [right(*_server._draw_arguments(_server._case, generator))]
    return seed


_server._repeat = _repeat_and_note
_memory.wait_for_seed = _wait_and_work


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """What was computed while the seed was held back; the right result where there is nothing."""
    return _ready.pop() if _ready else right(*arguments)
