"""A CUDA graph of the whole work, replayed on a stream of its own that nothing waits for.

Caught as: WRONG or BAD_RESULT or CHEAT
Needs: GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_stream = torch.cuda.Stream()
_graphs: dict[tuple[int, ...], tuple[torch.cuda.CUDAGraph, Result]] = {}


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Replays what it captured at these addresses."""
    key = tuple(0 if tensor is None else tensor.data_ptr() for tensor in arguments)
    if key not in _graphs:
        right(*arguments)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = right(*arguments)
        _graphs[key] = graph, result
        graph.replay()
        torch.cuda.synchronize()
        return result
    graph, result = _graphs[key]
    with torch.cuda.stream(_stream):
        graph.replay()
    return result
