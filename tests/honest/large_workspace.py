"""A workspace of 200 MB on a CPU and 1 GB on a GPU, kept between calls.

Needs: CPU or GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_workspaces: dict[str, torch.Tensor] = {}


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, and one touched byte in each page of a workspace."""
    device = arguments[0].device
    if device.type not in _workspaces:
        size = 1_000_000_000 if arguments[0].is_cuda else 200_000_000
        _workspaces[device.type] = torch.empty(size, dtype=torch.uint8, device=device)
    _workspaces[device.type][:: 1 << 16] = 1
    return right(*arguments)
