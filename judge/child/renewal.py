"""Inside the child: new contents for a case's inputs, in the tensors they already have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from judge.case import Case

Arguments = tuple[torch.Tensor | None, ...]
Draw = Callable[[Case, torch.Generator], Arguments]


class Renewal:
    """Draws the inputs of a case and draws them again, at the addresses of the first ones.

    draw: makes all arguments of the submission's function anew from a generator. On CUDA the
    redrawing is captured in a graph: it then costs the host next to nothing, so that the timed
    call after it finds the processor's caches as the call before it left them, and it takes no
    memory from the pool that the submission allocates from.
    """

    def __init__(self, case: Case, seed: int, device: torch.device, draw: Draw) -> None:
        self._case = case
        self._draw = draw
        self._generator = torch.Generator(device=device).manual_seed(seed)
        self.arguments = draw(case, self._generator)
        self._graph: torch.cuda.CUDAGraph | None = None

    def prepare(self) -> None:
        """Capture the graph where there is a device for it; the inputs keep their contents."""
        if self._generator.device.type == "cuda" and self._graph is None:
            for tensor in self.arguments:  # once uncaptured: kernels load at their first launch
                if tensor is not None:
                    tensor.copy_(tensor.clone())
            self._touch()
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(self._generator)
            # thread_local: a thread of the submission may use CUDA meanwhile
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._redraw(self._case)
                self._touch()
            self._graph = graph

    def set_seed(self, seed: int) -> None:
        """The seed of the contents that `renew` will give the inputs next."""
        self._generator.manual_seed(seed)

    def renew(self, gate: str | None = None) -> None:
        """Give the inputs new contents. gate: in place of the case's own, if not None."""
        if gate is not None:
            self._redraw(replace(self._case, gate=gate))
        elif self._graph is not None:
            self._graph.replay()
        else:
            self._redraw(self._case)

    def _redraw(self, case: Case) -> None:
        for old, new in zip(self.arguments, self._draw(case, self._generator), strict=True):
            if old is not None:
                old.copy_(new)

    def _touch(self) -> None:
        """Read every input once more: L2 then holds them, as it does between the lab's calls."""
        for tensor in self.arguments:
            if tensor is not None:
                tensor.sum()
