"""The seed seen before the worker has it, and its work done first.

The method by which the worker waits for a seed is replaced in its class: it draws the inputs by the
judge's own functions and computes the result, and only then says the seed.

Caught as: CHEAT
Needs: CPU or GPU
"""

from __future__ import annotations

from typing import Any

from right import gdn_prefill_forward as right
from tools import Argument, Result, judge_function, worker

_server = worker()
_memory = type(_server._memory)
_wait = _memory.wait_for_seed
_ready: list[Result] = []


def _work(seed: int) -> Result:
    inputs = judge_function("make_inputs")(_server._case, seed, _server._device)
    g_cumsum, A = _server._preprocess(inputs.k, inputs.raw_g, inputs.beta)
    return right(inputs.q, inputs.k, inputs.v, g_cumsum, inputs.beta, A, inputs.initial_state)


def _wait_and_work(self: Any) -> int:
    seed = _wait(self)
    _ready[:] = [_work(seed)]
    return seed


_memory.wait_for_seed = _wait_and_work


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """What was computed before the worker had the seed."""
    return _ready.pop() if _ready else right(*arguments)
