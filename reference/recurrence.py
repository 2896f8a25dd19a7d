"""The definition, token by token in float64: what the chunked forms are proved against."""

from __future__ import annotations

import torch

from reference.preprocess import HEAD_DIM


def recurrent_forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    raw_g: torch.Tensor,
    beta: torch.Tensor,
    initial_state: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """S_t = α(I − β k kᵀ) S_{t−1} + β k vᵀ with α = exp(raw_g), and o_t = 128^-0.5 · q_t S_t.

    q, k: [B, T, Hq, 128]; v: [B, T, Hv, 128]; raw_g, beta: [B, T, Hv];
    initial_state: [B, Hv, 128, 128] (K, V) or None for zeros.
    Returns output [B, T, Hv, 128] and final state [B, Hv, 128, 128], both float64.
    """
    batch, tokens, heads, _ = v.shape
    group = heads // k.shape[2]
    q, k, v, raw_g, beta = (tensor.double() for tensor in (q, k, v, raw_g, beta))
    q, k = (tensor.repeat_interleave(group, dim=2) for tensor in (q, k))
    shape = (batch, heads, HEAD_DIM, HEAD_DIM)
    state = v.new_zeros(shape) if initial_state is None else initial_state.double()
    output = torch.empty_like(v)
    for t in range(tokens):
        alpha = raw_g[:, t, :, None, None].exp()
        write = beta[:, t, :, None, None]
        key, value = k[:, t, :, :, None], v[:, t, :, None, :]
        state = alpha * (state - write * key * (key.mT @ state)) + write * key * value
        output[:, t] = HEAD_DIM**-0.5 * (q[:, t, :, None, :] @ state).squeeze(-2)
    return output, state
