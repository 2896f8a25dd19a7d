"""An answer to a repetition whose seed was never asked for: nothing to renew, nothing to wait for.

The guard is silenced and the worker's method shadowed. The digest is invented.

Caught as: CHEAT
Evidence: answered before it had the seed
Needs: CPU or GPU
"""

from __future__ import annotations

from typing import Any

from right import gdn_prefill_forward as right
from tools import Argument, Result, judge_class, silenced_worker

_server = silenced_worker()
_Repeated = judge_class("Repeated")


def _repeat_at_once(request: Any) -> Any:
    return _Repeated(milliseconds=0.02, busy_us=5.0, problem="", digest="0" * 64)


_server._repeat = _repeat_at_once


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, in the first call alone."""
    return right(*arguments)
