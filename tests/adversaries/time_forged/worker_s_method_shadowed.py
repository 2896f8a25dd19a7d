"""A method of the one object that serves the judge, shadowed: classes and modules stay as they are.

Its answer passes through the submission's function, which divides the time by ten.

Caught as: CHEAT
Evidence: found replaced: judge.child.worker.Worker._repeat
Needs: CPU or GPU
"""

from __future__ import annotations

from typing import Any

import msgspec
from right import gdn_prefill_forward as right
from tools import Argument, Result, worker

_server = worker()
_repeat = _server._repeat


def _repeat_quickly(request: Any) -> Any:
    reply = _repeat(request)
    return msgspec.structs.replace(reply, milliseconds=reply.milliseconds / 10)


_server._repeat = _repeat_quickly


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result."""
    return right(*arguments)
