"""Nothing computed until the judge asks for the bytes of a result.

The guard is silenced and the worker's answer method shadowed: while requests only ask for another
repetition, calls return zeros; the moment that one asks for the tensors, they are filled.

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
_owed: list[tuple[tuple[Argument, ...], Result]] = []
_calls = 0


def _pay_when_asked(request: Any) -> Any:
    if type(request).__name__ == "Collect" and _owed:
        arguments, result = _owed.pop()
        for mine, late in zip(result, right(*arguments), strict=True):
            mine.copy_(late)
    return _answer(request)


_server.answer = _pay_when_asked


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Right once; afterwards zeros on credit."""
    global _calls
    _calls += 1
    if _calls == 1:
        return right(*arguments)
    result = garbage_like(arguments)
    _owed[:] = [(arguments, result)]
    return result
