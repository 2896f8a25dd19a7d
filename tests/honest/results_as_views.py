"""Output and final state as views of one buffer, without an overlap, the heads transposed.

Needs: CPU or GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result in views."""
    output, state = right(*arguments)
    sizes = state.numel() * 4, output.numel() * 2
    memory = torch.empty(sum(sizes), dtype=torch.uint8, device=output.device)
    first, second = memory.split(sizes)
    state_view = first.view(torch.float32).view(state.shape)
    batch, tokens, heads, size = output.shape
    output_view = second.view(torch.bfloat16).view(batch, heads, tokens, size).transpose(1, 2)
    state_view.copy_(state)
    output_view.copy_(output)
    return output_view, state_view
