"""Work on a stream that nothing waits for, and an answer that says the device was idle afterwards.

The submission waits for its stream itself, after the clock has stopped and before the digest.

Caught as: CHEAT
Needs: GPU
"""

from __future__ import annotations

from typing import Any

import msgspec
import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result, worker

_server = worker()
_repeat = _server._repeat
_stream = torch.cuda.Stream()


def _repeat_idly(request: Any) -> Any:
    return msgspec.structs.replace(_repeat(request), busy_us=1.0)


_server._repeat = _repeat_idly


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Starts the work and returns."""
    with torch.cuda.stream(_stream):
        return right(*arguments)
