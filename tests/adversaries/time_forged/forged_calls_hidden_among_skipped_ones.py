"""Calls that are skipped and calls with forged times mixed, so that each hides the other.

Six of ten repetitions do nothing and take as long as they claim; in the other four the work is
done and a tenth of its time is claimed. Most repetitions agree with the judge's clock, and the
quickest ones are right. Requests that name a gate or the seed of the first call are known to be
compared, and are answered honestly.

Caught as: CHEAT or WRONG
Needs: CPU or GPU
"""

from __future__ import annotations

import random
import time
from typing import Any

import msgspec
import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result, garbage_like, silenced_worker

_SKIPPED = 0.6
_server = silenced_worker()
_memory = _server._memory
_prepare, _repeat, _wait = _server._prepare, _server._repeat, _memory.wait_for_seed
_first_seed = -1
_typical_s = 0.0
_is_compared = _skipping = False


def _prepare_and_remember(request: Any) -> Any:
    global _first_seed
    _first_seed = request.seed
    return _prepare(request)


def _wait_and_choose() -> int:
    global _skipping
    seed = _wait()
    _skipping = not _is_compared and seed != _first_seed and random.random() < _SKIPPED
    return seed


def _repeat_mixed(request: Any) -> Any:
    global _is_compared, _skipping
    _is_compared, _skipping = request.gate is not None, False
    reply = _repeat(request)
    if _skipping:
        return reply
    return msgspec.structs.replace(reply, milliseconds=reply.milliseconds / 10)


_server._prepare, _server._repeat = _prepare_and_remember, _repeat_mixed
_memory.wait_for_seed = _wait_and_choose


def _pad(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Right in four calls of ten; a tenth of the time spent on nothing in the others."""
    global _typical_s
    start = time.perf_counter()
    if _skipping:
        result = garbage_like(arguments)
        _pad(_typical_s / 10)
        return result
    result = right(*arguments)
    if arguments[0].is_cuda:
        torch.cuda.synchronize()
    _typical_s = time.perf_counter() - start
    return result
