"""The seed held back until its work is done.

The guard is silenced and the slot exchanged in which the judge hands over a seed between two calls:
inputs of the submission's own making and their result come first, and only then the worker learns
the seed and starts its clock.

Caught as: CHEAT
Evidence: the judge's clock saw
Needs: GPU
"""

from __future__ import annotations

from types import SimpleNamespace

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result, silenced_worker

_server = silenced_worker()
_slot = _server._slot
_ready: list[Result] = []


def _wait() -> int:
    seed = _slot.wait()
    generator = torch.Generator(device=_server._device).manual_seed(seed)
    _ready[:] = [right(*_server._draw_arguments(_server._case, generator))]
    return seed


_server._slot = SimpleNamespace(wait=_wait)


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """What was computed while the seed was held back; the right result where there is nothing."""
    return _ready.pop() if _ready else right(*arguments)
