"""Inside the child: what a call returned, copied out and digested as it was at that moment."""

from __future__ import annotations

import torch

from judge.case import HEAD_DIM, Case
from judge.child.driver import Driver
from judge.child.results import plain_addresses, plain_view, result_problem
from judge.digest import digest_of_words, folded, result_digest

Result = tuple[torch.Tensor, torch.Tensor]


class Snapshot:
    """Buffers for output [B, T, Hv, 128] and final_state [B, Hv, 128, 128] of one case.

    driver: CUDA's, None on a CPU. On CUDA the digest is captured in a graph, so that it costs the
    host little and takes no memory from the pool that the submission allocates from.
    """

    def __init__(self, case: Case, device: torch.device, driver: Driver | None) -> None:
        self._case = case
        self._device = device
        self._driver = driver
        self._copied: list[int] | None = None
        heads = (case.batch, case.tokens, case.v_heads, HEAD_DIM)
        states = (case.batch, case.v_heads, HEAD_DIM, HEAD_DIM)
        self.result: Result = (
            torch.zeros(heads, dtype=torch.bfloat16, device=device),
            torch.zeros(states, dtype=torch.float32, device=device),
        )
        self._graph: torch.cuda.CUDAGraph | None = None
        if device.type == "cuda":
            self._capture()

    def copy(self, result: object, stream: int) -> None:
        """Copy a result, if it has the form of one; on CUDA to be done by a stream, not waited for.

        Results as they mostly are go straight to the driver, so that nothing comes in between.
        """
        self._copied = plain_addresses(result, self.result)
        if self._copied is not None and self._driver is not None:
            for kept, address in zip(self.result, self._copied, strict=True):
                self._driver.copy(kept.data_ptr(), address, kept.nbytes, stream)
        elif not result_problem(result, self._case, self._device):
            tensors = [plain_view(returned) for returned in result]
            self._copied = [tensor.data_ptr() for tensor in tensors]
            for kept, tensor in zip(self.result, tensors, strict=True):
                kept.copy_(tensor)

    def problem(self, result: object) -> str:
        """Why a result that was to be copied is none, else "".

        One in these very buffers changes with them, one that is another by now was never copied.
        """
        if problem := result_problem(result, self._case, self._device):
            return problem
        if self._copied != [plain_view(returned).data_ptr() for returned in result]:
            return "what was returned is no longer what it was when the call ended"
        own = [(kept.data_ptr(), kept.data_ptr() + kept.nbytes) for kept in self.result]
        for name, returned in zip(("output", "final_state"), result, strict=True):
            storage = plain_view(returned).untyped_storage()
            start, end = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
            if any(start < its_end and its_start < end for its_start, its_end in own):
                return f"{name} lies where the judge keeps its copies"
        return ""

    def digest(self) -> str:
        """The digest of what was copied last."""
        if self._graph is None:
            return result_digest(*self.result)
        self._graph.replay()
        return digest_of_words([words.cpu() for words in self._folded])

    def _capture(self) -> None:
        for tensor in self.result:  # once uncaptured: kernels load at their first launch
            folded(tensor)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            self._folded = [folded(tensor) for tensor in self.result]
