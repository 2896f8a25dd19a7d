"""flash-linear-attention's own Triton kernels, whole forward.

It hands this operator to FlashQLA wherever that is installed, unless told not to before its first
call, which decides for the whole process.
"""

from __future__ import annotations

import os

os.environ["FLA_FLASH_QLA"] = "0"

import torch
from fla.ops.gated_delta_rule import chunk_gated_delta_rule


def gdn_prefill_forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    raw_g: torch.Tensor,
    beta: torch.Tensor,
    initial_state: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Arguments and results as in `reference.baselines`."""
    with torch.no_grad():
        return chunk_gated_delta_rule(
            q,
            k,
            v,
            raw_g,
            beta,
            scale=q.shape[-1] ** -0.5,
            initial_state=initial_state,
            output_final_state=True,
        )
