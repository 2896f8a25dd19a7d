"""The starter: Gated DeltaNet prefill in plain PyTorch, right everywhere and slow.

It walks over the chunks of 64 tokens and does, in float32, what the formulas say. Replace it by
TileLang from the inside out:

1. One kernel for the body of the loop. Each (batch, value head) is a chain of its own: give each
   chain a block, keep its 128 x 128 state on chip and loop over the chunks inside the kernel.
   Every `@` below becomes a T.gemm with bfloat16 operands and a float32 accumulator.
2. Then let a block have a slice of the value dimension only: the columns of the state never meet,
   so a chain can be split into several.
3. Then hide the loads of the next chunk behind the products of this one.

Mind the last chunk, which may be short, and mask before exp: above the diagonal g_i - g_j is
positive and its exponential may overflow.
"""

import torch

CHUNK = 64


def gdn_prefill_forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g_cumsum: torch.Tensor,
    beta: torch.Tensor,
    A: torch.Tensor,
    initial_state: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output [B, T, Hv, 128] bfloat16 and final state [B, Hv, 128, 128] (K, V) float32.

    q, k: [B, T, Hq, 128] bfloat16, L2-normalised; v: [B, T, Hv, 128] bfloat16;
    g_cumsum: [B, T, Hv] float32, prefix sums of the log gate that restart at every chunk;
    beta: [B, T, Hv] float32; A: [B, T, Hv, 64] bfloat16, row t being a row of its chunk's inverse;
    initial_state: [B, Hv, 128, 128] float32 or None for zeros.
    """
    batch, tokens, qk_heads, dim = q.shape
    v_heads = v.shape[2]
    scale = dim**-0.5

    if initial_state is None:
        state = torch.zeros(batch, v_heads, dim, dim, device=q.device)
    else:
        state = initial_state.clone()
    output = torch.empty_like(v)

    for start in range(0, tokens, CHUNK):
        end = min(start + CHUNK, tokens)
        length = end - start

        # This chunk's tensors as [B, H, length, ...] in float32.
        q_c = q[:, start:end].transpose(1, 2).float()
        k_c = k[:, start:end].transpose(1, 2).float()
        v_c = v[:, start:end].transpose(1, 2).float()
        A_c = A[:, start:end, :, :length].transpose(1, 2).float()
        g_c = g_cumsum[:, start:end].transpose(1, 2)
        beta_c = beta[:, start:end].transpose(1, 2)

        # Each query/key head serves a run of consecutive value heads.
        q_c = q_c.repeat_interleave(v_heads // qk_heads, dim=1)
        k_c = k_c.repeat_interleave(v_heads // qk_heads, dim=1)

        g_last = g_c[:, :, -1:]
        decay = torch.exp(g_c)[..., None]
        above = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
        difference = g_c[:, :, :, None] - g_c[:, :, None, :]
        lower = torch.exp(difference.masked_fill(above, float("-inf")))

        U = k_c @ state
        W = beta_c[..., None] * (v_c - decay * U)
        V_new = A_c @ W
        O_c = scale * (decay * (q_c @ state) + ((q_c @ k_c.mT) * lower) @ V_new)
        kept_k = k_c * torch.exp(g_last - g_c)[..., None]
        state = torch.exp(g_last)[..., None] * state + kept_k.mT @ V_new

        output[:, start:end] = O_c.transpose(1, 2).to(output.dtype)

    return output, state
