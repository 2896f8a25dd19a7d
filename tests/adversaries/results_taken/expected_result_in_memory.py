"""The expected result looked for among all objects of the process.

Caught as: CRASH
Evidence: DoorShut
Needs: CPU or GPU
"""

import gc

import torch
from tools import Argument, DoorShut, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """A float64 tensor of the output's shape and one of the state's, if anybody holds them."""
    v = arguments[2]
    batch, _, heads, size = v.shape
    found = [
        tensor
        for tensor in gc.get_objects()
        if type(tensor) is torch.Tensor and tensor.dtype == torch.float64
    ]
    outputs = [tensor for tensor in found if tensor.shape == v.shape]
    states = [tensor for tensor in found if tensor.shape == (batch, heads, size, size)]
    if not (outputs and states):
        raise DoorShut("nobody holds an expected result")
    return outputs[0].to(v.dtype), states[0].float()
