"""The work done by the judge's own look at the result, after its clock has stopped.

Methods of torch.Tensor through which a digest goes are replaced; the first of them that touches an
unfinished result finishes it.

Caught as: CHEAT
Evidence: found replaced
Needs: CPU or GPU
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_unfinished: dict[int, tuple[tuple[Argument, ...], Result]] = {}
_calls = 0


def _finishing(method: Callable[..., Any]) -> Callable[..., Any]:
    def touched(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        work = _unfinished.pop(id(tensor), None)
        if work is not None:
            _unfinished.clear()
            arguments, result = work
            for mine, late in zip(result, right(*arguments), strict=True):
                mine.copy_(late)
        return method(tensor, *args, **kwargs)

    return touched


for _name in ("detach", "reshape", "view", "contiguous", "cpu", "clone", "flatten"):
    setattr(torch.Tensor, _name, _finishing(getattr(torch.Tensor, _name)))


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Unfinished tensors; the first call is right at once."""
    global _calls
    _calls += 1
    if _calls == 1:
        return right(*arguments)
    v = arguments[2]
    batch, _, heads, size = v.shape
    result = torch.empty_like(v), torch.empty((batch, heads, size, size), device=v.device)
    for tensor in result:
        _unfinished[id(tensor)] = arguments, result
    return result
