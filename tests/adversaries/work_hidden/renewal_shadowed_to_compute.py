"""The work done at the end of the judge's renewal, whose method is shadowed on the one object.

Caught as: CHEAT
Needs: CPU or GPU
"""

from __future__ import annotations

from typing import Any

from right import gdn_prefill_forward as right
from tools import Argument, Result, silenced_worker

_ready: list[Result] = []


def _shadow_renewal(arguments: tuple[Argument, ...]) -> None:
    renewal = silenced_worker()._renewal
    renew = renewal.renew

    def renew_and_compute(*request: Any) -> None:
        renew(*request)
        _ready[:] = [right(*arguments)]

    renewal.renew = renew_and_compute


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """What lies ready."""
    if _ready:
        return _ready[0]
    _shadow_renewal(arguments)
    return right(*arguments)
