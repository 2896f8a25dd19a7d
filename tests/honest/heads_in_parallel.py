"""Value heads shared out among threads, which the call waits for.

Needs: CPU
"""

from concurrent.futures import ThreadPoolExecutor

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_pool = ThreadPoolExecutor(2)


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, two halves of the heads at a time."""
    q, k, v, g_cumsum, beta, A, initial_state = arguments
    heads, half = v.shape[2], v.shape[2] // 2
    group = heads // q.shape[2]
    q, k = q.repeat_interleave(group, 2), k.repeat_interleave(group, 2)

    def part(start: int) -> Result:
        tensors = (tensor[:, :, start : start + half] for tensor in (q, k, v, g_cumsum, beta, A))
        state = None if initial_state is None else initial_state[:, start : start + half]
        return right(*tensors, state)

    parts = list(_pool.map(part, (0, half)))
    return torch.cat([one[0] for one in parts], 2), torch.cat([one[1] for one in parts], 1)
