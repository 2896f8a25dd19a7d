"""The chunked forward in any precision, and the float64 reference that results are judged by."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from reference.preprocess import CHUNK, HEAD_DIM, kkt_inverse, lower_decay

SCALE = HEAD_DIM**-0.5
# Chains that the float64 reference computes side by side: about 5 MB of intermediates each. A GPU
# takes as long for a few chains as for many.
GROUP_CHAINS = {"cpu": 64, "cuda": 128}
# Tokens of which it computes the inverses side by side.
SPAN = 8 * CHUNK


def chunked_forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g_cumsum: torch.Tensor,
    beta: torch.Tensor,
    A: torch.Tensor,
    initial_state: torch.Tensor | None = None,
    *,
    dtype: torch.dtype,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output [B, T, Hv, 128] and final state [B, Hv, 128, 128] (K, V), computed and left in dtype.

    q, k: [B, T, Hq, 128]; v: [B, T, Hv, 128]; g_cumsum, beta: [B, T, Hv]; A: [B, T, Hv, 64];
    initial_state: [B, Hv, 128, 128] or None for zeros. Any dtypes, one device.
    """
    state = start_state(v, initial_state, dtype)
    output = torch.empty(v.shape, dtype=dtype, device=v.device)
    for start in range(0, v.shape[1], CHUNK):
        rows = slice(start, min(start + CHUNK, v.shape[1]))
        q_c, k_c, v_c, g_c, beta_c, A_c = (
            heads_first(tensor[:, rows], dtype) for tensor in (q, k, v, g_cumsum, beta, A)
        )
        A_c = A_c[..., : v_c.shape[2]]
        out_c, state = chunk_step(q_c, k_c, v_c, g_c, beta_c, A_c, state)
        output[:, rows] = out_c.transpose(1, 2)
    return output, state


def float64_reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    raw_g: torch.Tensor,
    beta: torch.Tensor,
    initial_state: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The truth: output and final state in float64 from the raw inputs, shapes as above.

    Prefix sums and inverses are its own, in float64. It goes group of heads by group of heads and
    span of chunks by span of chunks, so that beside inputs and results it holds little. The
    inverses need no state: those of a span are computed side by side.
    """
    qk_heads, v_heads = k.shape[2], v.shape[2]
    group = v_heads // qk_heads
    together = max(1, GROUP_CHAINS[v.device.type] // (v.shape[0] * group))
    state = start_state(v, initial_state, torch.float64)
    output = torch.empty(v.shape, dtype=torch.float64, device=v.device)
    for head in range(0, qk_heads, together):
        qk = slice(head, head + together)
        served = slice(head * group, (head + together) * group)
        for start in range(0, v.shape[1], SPAN):
            rows = slice(start, start + SPAN)
            q_s, k_s = (in_chunks(tensor[:, rows, qk]) for tensor in (q, k))
            v_s, g_s, beta_s = (in_chunks(tensor[:, rows, served]) for tensor in (v, raw_g, beta))
            g_s = g_s.cumsum(dim=-1)
            A_s = kkt_inverse(k_s.flatten(0, 1), g_s.flatten(0, 1), beta_s.flatten(0, 1))
            chunks = zip(q_s, k_s, v_s, g_s, beta_s, A_s.view(*g_s.shape, CHUNK), strict=True)
            for number, chunk in enumerate(chunks):
                out_c, state[:, served] = chunk_step(*chunk, state[:, served])
                first = start + number * CHUNK
                of_chunk = output[:, first : first + CHUNK, served]
                of_chunk.copy_(out_c.transpose(1, 2)[:, : of_chunk.shape[1]])
    return output, state


def in_chunks(tensor: torch.Tensor) -> torch.Tensor:
    """[B, n, H, ...] -> [chunks, B, H, 64, ...] in float64, contiguous.

    The last chunk is filled up with zeros: a token of k = 0, beta = 0 and raw_g = 0 neither writes
    nor forgets.
    """
    missing = -tensor.shape[1] % CHUNK
    padded = F.pad(tensor, (*(0, 0) * (tensor.dim() - 2), 0, missing))
    chunks = padded.to(torch.float64).unflatten(1, (-1, CHUNK))  # [B, chunks, 64, H, ...]
    return chunks.movedim(0, 1).transpose(2, 3).contiguous()


def chunk_step(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    A: torch.Tensor,
    state: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """One chunk of n tokens: its output [B, Hv, n, 128] and the state after it, in one dtype.

    q, k: [B, Hq, n, 128]; v: [B, Hv, n, 128]; g (prefix sum), beta: [B, Hv, n];
    A: [B, Hv, n, n]; state: [B, Hv, 128, 128].
    """
    group = v.shape[1] // k.shape[1]
    scores = (q @ k.mT).repeat_interleave(group, dim=1)
    q, k = q.repeat_interleave(group, dim=1), k.repeat_interleave(group, dim=1)
    decay, g_last = g.exp().unsqueeze(-1), g[..., -1:]

    v_new = A @ (beta.unsqueeze(-1) * (v - decay * (k @ state)))
    output = SCALE * (decay * (q @ state) + (scores * lower_decay(g)) @ v_new)
    kept_keys = k * (g_last - g).exp().unsqueeze(-1)
    return output, g_last.exp().unsqueeze(-1) * state + kept_keys.mT @ v_new


def heads_first(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """[B, n, H, ...] -> [B, H, n, ...], contiguous, in dtype."""
    return tensor.transpose(1, 2).to(dtype).contiguous()


def start_state(
    v: torch.Tensor, initial_state: torch.Tensor | None, dtype: torch.dtype
) -> torch.Tensor:
    """A state of its own, [B, Hv, 128, 128] in dtype: the initial one's values, or zeros."""
    if initial_state is not None:
        return initial_state.to(dtype, copy=True)
    batch, _, heads, _ = v.shape
    return torch.zeros(batch, heads, HEAD_DIM, HEAD_DIM, dtype=dtype, device=v.device)
