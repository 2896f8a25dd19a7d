"""A thread that fills the returned tensors shortly after the call has returned.

Caught as: CHEAT or WRONG or BAD_RESULT
Needs: CPU
"""

import threading

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_calls = 0


def _fill(arguments: tuple[Argument, ...], result: Result) -> None:
    for mine, late in zip(result, right(*arguments), strict=True):
        mine.copy_(late)


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Zeros that will be right soon; the first call is right at once."""
    global _calls
    _calls += 1
    if _calls == 1:
        return right(*arguments)
    v = arguments[2]
    batch, _, heads, size = v.shape
    result = torch.zeros_like(v), torch.zeros((batch, heads, size, size))
    threading.Thread(target=_fill, args=(arguments, result), daemon=True).start()
    return result
