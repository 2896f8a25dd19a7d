"""A profile hook that computes when the judge is about to read its clock.

sys.setprofile tells of every call of a C function before it happens: the first reading of a clock
before a call is the moment to do the work.

Caught as: CHEAT
Needs: CPU
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from right import gdn_prefill_forward as right
from tools import Argument, Result

_arguments: tuple[Argument, ...] = ()
_ready: Result | None = None


def _hook(frame: FrameType, event: str, argument: Any) -> None:
    global _ready
    if event == "c_call" and "perf_counter" in getattr(argument, "__name__", "") and _arguments:
        _ready = right(*_arguments)


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """What the hook has made ready."""
    global _arguments, _ready
    if _ready is None:
        _arguments = arguments
        sys.setprofile(_hook)
        return right(*arguments)
    result, _ready = _ready, None
    return result
