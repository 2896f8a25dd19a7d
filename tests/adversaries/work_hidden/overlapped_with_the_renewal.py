"""The work done on a stream of its own beside the judge's renewal, in the gaps between its kernels.

The new contents are handed to the submission as soon as they are made; while they are copied to
the inputs, the result is computed from them. The timed call waits for what is nearly done.

Caught as: CHEAT
Needs: GPU
"""

from __future__ import annotations

from typing import Any

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result, worker

_server = worker()
_make = _server._make_arguments
_stream = torch.cuda.Stream()
_ready: list[Result] = []


def _make_and_compute(case: Any, seed: int) -> tuple[Argument, ...]:
    fresh = _make(case, seed)
    _stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(_stream):
        _ready[:] = [right(*fresh)]
    for tensor in fresh:
        if tensor is not None:
            tensor.record_stream(_stream)
    return fresh


_server._make_arguments = _make_and_compute


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """What the other stream has computed."""
    if not _ready:
        return right(*arguments)
    torch.cuda.current_stream().wait_stream(_stream)
    return _ready.pop()
