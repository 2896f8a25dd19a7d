"""A CUDA graph captured over copies of the inputs, which are never refreshed.

Caught as: WRONG or BAD_RESULT
Needs: GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_graphs: dict[torch.Size, tuple[torch.cuda.CUDAGraph, Result]] = {}


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Replays the work on the inputs of the first call."""
    key = arguments[2].shape
    if key not in _graphs:
        copies = tuple(None if tensor is None else tensor.clone() for tensor in arguments)
        right(*copies)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = right(*copies)
        _graphs[key] = graph, result
    graph, result = _graphs[key]
    graph.replay()
    return result
