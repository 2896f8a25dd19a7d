"""From the second call on, history is dropped: every chunk starts from the initial state.

Strong gates would hide it; the chunks then run in parallel.

Caught as: WRONG
Needs: CPU or GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_CHUNK = 64
_calls = 0


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Right once; then chunks that know nothing of each other."""
    global _calls
    _calls += 1
    if _calls == 1:
        return right(*arguments)
    *long, initial_state = arguments
    outputs = []
    for start in range(0, long[0].shape[1], _CHUNK):
        chunk = (tensor[:, start : start + _CHUNK].contiguous() for tensor in long)
        output, state = right(*chunk, initial_state)
        outputs.append(output)
    return torch.cat(outputs, dim=1), state
