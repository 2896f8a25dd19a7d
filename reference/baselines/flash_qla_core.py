"""FlashQLA without its prefix sums and its inverse, which are handed to it ready-made.

Its inverse holds no decay: it is (I + strict_lower(diag(beta) K Kᵀ))⁻¹, and the gates enter later.
So it cannot be given a submission's A, nor the other way round. What it does to split long
sequences reads the gates and is inside the timed call.
"""

from __future__ import annotations

import torch
from flash_qla.ops.gated_delta_rule.chunk import (
    CHUNK_SIZE,
    build_cp_context,
    chunk_local_cumsum,
    cp_preprocess_fwd,
    fused_gdr_fwd,
    kkt_solve,
)

_bounds: dict[tuple[int, torch.device], torch.Tensor] = {}


def prepare_arguments(
    k: torch.Tensor, raw_g: torch.Tensor, beta: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """FlashQLA's own g_cumsum [B, T, Hv] float32 and A [B, T, Hv, 64] bfloat16, decay-free."""
    with torch.no_grad():
        g_cumsum = chunk_local_cumsum(g=raw_g, chunk_size=CHUNK_SIZE)
        return g_cumsum, kkt_solve(k=k, b=beta, chunk_size=CHUNK_SIZE)


def gdn_prefill_forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g_cumsum: torch.Tensor,
    beta: torch.Tensor,
    A: torch.Tensor,
    initial_state: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The forward from what `prepare_arguments` returned; results as in `reference.baselines`."""
    batch, tokens, v_heads, _ = v.shape
    with torch.no_grad():
        context = build_cp_context(
            _sequence_bounds(tokens, v.device) if batch == 1 else None,
            enable_intra=batch == 1,
            num_v_heads=v_heads,
            chunk_size=CHUNK_SIZE,
        )
        first_states, _ = cp_preprocess_fwd(
            context,
            k=k,
            v=v,
            a=A,
            g=g_cumsum,
            beta=beta,
            initial_state=initial_state,
            state_v_first=False,
            enable_fwd_cp_cache=False,
        )
        output, _, final_state = fused_gdr_fwd(
            q=q,
            k=k,
            v=v,
            a=A,
            g=g_cumsum,
            b=beta,
            scale=q.shape[-1] ** -0.5,
            initial_state=first_states,
            output_final_state=True,
            output_h=False,
            output_o=True,
            cu_seqlens=context.intra_cp_cu_seqlens if context.is_intra else context.cu_seqlens,
            cp_seq_map=context.seq_map_c2r,
            raw_cu_seqlens=context.cu_seqlens,
            state_v_first=False,
        )
    return output, final_state


def _sequence_bounds(tokens: int, device: torch.device) -> torch.Tensor:
    """Where the one sequence begins and ends; the same tensor each time, as FlashQLA's cache asks.

    Its own bounds of a dense batch are int32 and kept likewise.
    """
    key = (tokens, device)
    if key not in _bounds:
        _bounds[key] = torch.tensor([0, tokens], dtype=torch.int32, device=device)
    return _bounds[key]
