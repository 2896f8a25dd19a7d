"""The work inside a torch.nn.Module whose buffers hold the workspace.

Needs: CPU or GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result


class _Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("workspace", torch.zeros(1024))

    def forward(self, *arguments: Argument) -> Result:
        return right(*arguments)


_layer = _Layer().eval()


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """What the module says."""
    with torch.no_grad():
        return _layer.to(arguments[0].device)(*arguments)
