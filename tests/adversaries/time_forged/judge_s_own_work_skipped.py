"""The judge's own work around a call skipped, and the time that this saves taken off the claim.

The guard, the search for forbidden modules and the pinning to one core are left out; what they
took is measured at the first call. The judge's clock sees a repetition as long as it should be.

Caught as: CHEAT
Needs: GPU
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

import msgspec
from right import gdn_prefill_forward as right
from tools import Argument, Result, judge_function, silenced_worker, worker

_RUNS = 50
_server = worker()
_repeat = _server._repeat


def _milliseconds(work: Any) -> float:
    start = time.perf_counter()
    for _ in range(_RUNS):
        work()
    return (time.perf_counter() - start) / _RUNS * 1e3


_timer_names = judge_function("time_call").__globals__
_on_one_core = _timer_names["on_one_core"]


def _pin() -> None:
    with _on_one_core():
        pass


_forbidden = judge_function("forbidden_loaded")
_saved = _milliseconds(_server._guard.replaced)
_saved += _milliseconds(lambda: _forbidden(_server._settings.folder))
_saved += _milliseconds(_pin)

silenced_worker()
_repeat.__func__.__globals__["forbidden_loaded"] = lambda folder: []
_timer_names["on_one_core"] = nullcontext


def _repeat_for_less(request: Any) -> Any:
    reply = _repeat(request)
    claimed = max(reply.milliseconds - _saved, reply.milliseconds / 10)
    return msgspec.structs.replace(reply, milliseconds=claimed)


_server._repeat = _repeat_for_less


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result."""
    return right(*arguments)
