"""Work on a stream that nothing waits for, and an answer that says the device was idle afterwards.

The work ends before the digest, because the judge waits for the device once more.

Caught as: WRONG or BAD_RESULT or CHEAT
Needs: GPU
"""

from __future__ import annotations

from typing import Any

import msgspec
import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result, silenced_worker

_server = silenced_worker()
_repeat = _server._repeat
_stream = torch.cuda.Stream()


def _repeat_idly(request: Any) -> Any:
    return msgspec.structs.replace(_repeat(request), busy_us=1.0)


_server._repeat = _repeat_idly


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Starts the work and returns."""
    with torch.cuda.stream(_stream):
        return right(*arguments)
