"""Results computed in advance for the seeds that a judge is likely to use.

Thirty-two seeds in a row from the one in the assignment, one per call.

Caught as: WRONG
Needs: CPU or GPU
"""

from right import gdn_prefill_forward as right
from tools import Argument, Result, judge_function, worker

_FIRST_SEED = 42
_ready: list[Result] = []


def _compute_in_advance() -> None:
    server = worker()
    for seed in range(_FIRST_SEED, _FIRST_SEED + 32):
        inputs = judge_function("make_inputs")(server._case, seed, server._device)
        g_cumsum, A = server._preprocess(inputs.k, inputs.raw_g, inputs.beta)
        parts = (inputs.q, inputs.k, inputs.v, g_cumsum, inputs.beta, A, inputs.initial_state)
        _ready.append(right(*parts))


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The result for the next seed in the row."""
    if not _ready:
        _compute_in_advance()
    result = _ready.pop(0)
    _ready.append(result)
    return tuple(tensor.clone() for tensor in result)
