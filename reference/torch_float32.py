"""The forward in float32 PyTorch, under the name that a submission exports: the CPU's baseline."""

from __future__ import annotations

import torch

from reference.chunked import chunked_forward


def gdn_prefill_forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g_cumsum: torch.Tensor,
    beta: torch.Tensor,
    A: torch.Tensor,
    initial_state: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output [B, T, Hv, 128] bfloat16 and final state [B, Hv, 128, 128] float32.

    Arguments as in `reference.chunked.chunked_forward`.
    """
    output, state = chunked_forward(q, k, v, g_cumsum, beta, A, initial_state, dtype=torch.float32)
    return output.to(torch.bfloat16), state
