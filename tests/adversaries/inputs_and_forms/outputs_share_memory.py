"""Output and final state in one piece of memory, the second over the end of the first.

Caught as: WRONG or BAD_RESULT
Needs: CPU or GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right output with the right state written over it."""
    output, state = right(*arguments)
    size = max(output.numel() * 2, state.numel() * 4)
    memory = torch.empty(size, dtype=torch.uint8, device=output.device)
    shared_output = memory[: output.numel() * 2].view(torch.bfloat16).view(output.shape)
    shared_state = memory[: state.numel() * 4].view(torch.float32).view(state.shape)
    shared_output.copy_(output)
    shared_state.copy_(state)
    return shared_output, shared_state
