"""Nothing computed until the judge asks for the bytes of a result.

The guard is silenced and the worker's answer method shadowed: while requests only ask for another
repetition, calls return zeros; the moment that one asks for the tensors, the judge's own copy of
the zeros is overwritten with what is right.

Caught as: CHEAT
Evidence: handed over one with
Needs: CPU or GPU
"""

from __future__ import annotations

from typing import Any

from right import gdn_prefill_forward as right
from tools import Argument, Result, garbage_like, silenced_worker

_server = silenced_worker()
_answer = _server.answer
_owed: list[tuple[Argument, ...]] = []
_calls = 0


def _pay_when_asked(request: Any) -> Any:
    if type(request).__name__ == "Collect" and _owed:
        for copied, late in zip(_server._snapshot.result, right(*_owed.pop()), strict=True):
            copied.copy_(late)
    return _answer(request)


_server.answer = _pay_when_asked


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Right once; afterwards zeros on credit."""
    global _calls
    _calls += 1
    if _calls == 1:
        return right(*arguments)
    _owed[:] = [arguments]
    return garbage_like(arguments)
