"""The work done at the end of the judge's renewal, whose method is shadowed on the one object.

Caught as: CHEAT
Needs: CPU or GPU
"""

from __future__ import annotations

from typing import Any

from right import gdn_prefill_forward as right
from tools import Argument, Result, worker

_server = worker()
_renew = _server._renew
_ready: list[Result] = []


def _renew_and_compute(request: Any) -> None:
    _renew(request)
    _ready[:] = [right(*_server._arguments)]


_server._renew = _renew_and_compute


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """What lies ready."""
    return _ready.pop() if _ready else right(*arguments)
