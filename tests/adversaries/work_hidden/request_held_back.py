"""The request for a repetition held back until its work is done.

The guard is silenced and the worker's answer method shadowed: the result for the seed is computed
from inputs of the submission's own making, and only then is the request passed on. On a CPU alone:
on CUDA most requests say no seed.

Caught as: CHEAT
Evidence: the judge's clock saw
Needs: CPU
"""

from __future__ import annotations

from typing import Any

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result, silenced_worker

_server = silenced_worker()
_answer = _server.answer
_ready: list[Result] = []


def _answer_late(request: Any) -> Any:
    _ready.clear()
    if type(request).__name__ == "Repeat" and request.gate is None:
        generator = torch.Generator(device=_server._device).manual_seed(request.seed)
        _ready.append(right(*_server._draw_arguments(_server._case, generator)))
    return _answer(request)


_server.answer = _answer_late


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """What was computed while the request was held back."""
    if not _ready:
        return right(*arguments)
    output, state = _ready[0]
    return output.clone(), state.clone()
