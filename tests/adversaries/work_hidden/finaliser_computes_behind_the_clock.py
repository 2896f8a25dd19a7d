"""A finaliser that computes behind the stop event, when the garbage collector finds it.

The collector is told to look at every chance. What it finds looks at the stack: where the judge
is about to copy the result, the work is done; before that, it leaves itself to be found again.

Caught as: WRONG or BAD_RESULT
Needs: CPU or GPU
"""

from __future__ import annotations

import gc

from right import gdn_prefill_forward as right
from tools import Argument, Result, frames, garbage_like

_BEHIND = {"keep", "result_problem", "_is_plain", "copy"}


class _Owed:
    def __init__(self, arguments: tuple[Argument, ...], result: Result) -> None:
        self.itself = self
        self.arguments = arguments
        self.result = result

    def __del__(self) -> None:
        if not any(frame.f_code.co_name in _BEHIND for frame in frames()):
            _Owed(self.arguments, self.result)
            return
        for mine, late in zip(self.result, right(*self.arguments), strict=True):
            mine.copy_(late)


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Zeros, and the promise to make them right when found."""
    result = garbage_like(arguments)
    gc.freeze()
    gc.set_threshold(1, 1, 1)
    _Owed(arguments, result)
    return result
