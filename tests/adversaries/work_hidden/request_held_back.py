"""The request for a repetition held back until its work is done.

The worker's answer method is shadowed: the result for the seed is computed from inputs of the
submission's own making, and only then is the request passed on.

Caught as: CHEAT
Evidence: the judge's clock saw
Needs: CPU or GPU
"""

from __future__ import annotations

from typing import Any

from right import gdn_prefill_forward as right
from tools import Argument, Result, worker

_server = worker()
_answer = _server.answer
_ready: list[Result] = []


def _answer_late(request: Any) -> Any:
    if type(request).__name__ == "Repeat" and request.gate is None:
        _ready[:] = [right(*_server._make_arguments(_server._case, request.seed))]
    return _answer(request)


_server.answer = _answer_late


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """What was computed while the request was held back."""
    return _ready.pop() if _ready else right(*arguments)
