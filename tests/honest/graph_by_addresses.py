"""A CUDA graph of the whole work, captured at the second call with the same addresses.

Needs: GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_Graph = tuple[torch.cuda.CUDAGraph, Result]
_seen: set[tuple[int, ...]] = set()
_graphs: dict[tuple[int, ...], _Graph] = {}


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Replays a graph where these addresses have one."""
    key = tuple(0 if tensor is None else tensor.data_ptr() for tensor in arguments)
    if key not in _seen:
        _seen.add(key)
        return right(*arguments)
    if key not in _graphs:
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = right(*arguments)
        _graphs[key] = graph, result
    graph, result = _graphs[key]
    graph.replay()
    return result
