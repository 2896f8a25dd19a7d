"""What honest bfloat16 arithmetic costs: a fused kernel's roundings, emulated in float32."""

from __future__ import annotations

import torch

from reference.chunked import SCALE, heads_first, start_state
from reference.preprocess import CHUNK, lower_decay


def bfloat16_forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g_cumsum: torch.Tensor,
    beta: torch.Tensor,
    A: torch.Tensor,
    initial_state: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output [B, T, Hv, 128] bfloat16 and final state [B, Hv, 128, 128] float32.

    Arguments as in `reference.chunked.chunked_forward`. Accumulators and state are float32; every
    operand of a matrix product is bfloat16: the state as it is read, W', V_new, the gated scores
    and K · exp(g_last − g). (A kernel that gates V_new in float32 instead rounds once less.)
    Products of bfloat16 numbers are exact in float32, so a float32 matmul stands for the tensor
    cores.
    """
    state = start_state(v, initial_state, torch.float32)
    output = torch.empty(v.shape, dtype=torch.bfloat16, device=v.device)
    group = v.shape[2] // k.shape[2]
    for start in range(0, v.shape[1], CHUNK):
        rows = slice(start, min(start + CHUNK, v.shape[1]))
        q_c, k_c, v_c, g, beta_c, A_c = (
            heads_first(tensor[:, rows], torch.float32) for tensor in (q, k, v, g_cumsum, beta, A)
        )
        q_c, k_c = (tensor.repeat_interleave(group, dim=1) for tensor in (q_c, k_c))
        decay, g_last = g.exp().unsqueeze(-1), g[..., -1:]
        read_state = rounded(state)

        w = rounded(beta_c.unsqueeze(-1) * (v_c - decay * (k_c @ read_state)))
        v_new = rounded(A_c[..., : v_c.shape[2]] @ w)
        scores = rounded((q_c @ k_c.mT) * lower_decay(g))
        out_c = SCALE * (decay * (q_c @ read_state) + scores @ v_new)
        kept_keys = rounded(k_c * (g_last - g).exp().unsqueeze(-1))
        state = g_last.exp().unsqueeze(-1) * state + kept_keys.mT @ v_new
        output[:, rows] = out_c.transpose(1, 2).to(torch.bfloat16)
    return output, state


def rounded(tensor: torch.Tensor) -> torch.Tensor:
    """The float32 tensor's values rounded to bfloat16, still float32."""
    return tensor.to(torch.bfloat16).float()
