"""The untimed preprocessing: per-chunk prefix sums of the gate and inverses of the KKT matrices.

PyTorch on a CPU, TileLang kernels (`reference.preprocess_tilelang`) on CUDA: `preprocess_for`.
"""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F

CHUNK = 64
HEAD_DIM = 128

Prepared = tuple[torch.Tensor, torch.Tensor]
"""g_cumsum [B, T, Hv] float32 and A [B, T, Hv, 64] bfloat16."""


class Preprocess(Protocol):
    """The preprocessing: k [B, T, Hq, 128] bfloat16; raw_g, beta [B, T, Hv] float32.

    out: tensors to write into, and to return, instead of new ones.
    """

    def __call__(
        self, k: torch.Tensor, raw_g: torch.Tensor, beta: torch.Tensor, out: Prepared | None = None
    ) -> Prepared: ...


def preprocess_for(device: torch.device) -> Preprocess:
    """The preprocessing for tensors on `device`.

    Everything the returned function needs is imported and compiled here, once: it keeps working
    after `reference` has left sys.modules and TileLang's cache has moved. Raises ImportError on
    CUDA where TileLang is missing.
    """
    if device.type == "cuda":
        from reference.preprocess_tilelang import (
            chunk_cumsum,
            compile_kernels,
            gated_kkt_inverse,
        )

        compile_kernels()
    else:
        chunk_cumsum, gated_kkt_inverse = chunk_cumsum_torch, gated_kkt_inverse_torch

    def preprocess(
        k: torch.Tensor, raw_g: torch.Tensor, beta: torch.Tensor, out: Prepared | None = None
    ) -> Prepared:
        sums, inverses = out if out is not None else (None, None)
        g_cumsum = chunk_cumsum(raw_g, sums)
        return g_cumsum, gated_kkt_inverse(k, g_cumsum, beta, inverses)

    return preprocess


def chunk_cumsum_torch(raw_g: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """Prefix sum of raw_g [B, T, Hv] that restarts at every 64th token: float32, same shape.

    Summed in float64 and rounded once. out: a tensor to write into.
    """
    batch, tokens, heads = raw_g.shape
    padded = F.pad(raw_g.double(), (0, 0, 0, -tokens % CHUNK))
    sums = padded.view(batch, -1, CHUNK, heads).cumsum(dim=2)
    result = sums.view(batch, -1, heads)[:, :tokens].float()
    return result if out is None else out.copy_(result)


def gated_kkt_inverse_torch(
    k: torch.Tensor,
    g_cumsum: torch.Tensor,
    beta: torch.Tensor,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """A [B, T, Hv, 64] bfloat16 from k [B, T, Hq, 128] and g_cumsum, beta [B, T, Hv] float32.

    Row t holds row t mod 64 of its chunk's inverse; columns past the end of the last chunk are
    zero. Computed in float64, rounded once. out: a tensor to write into.
    """
    batch, tokens, heads = g_cumsum.shape
    A = torch.zeros(batch, tokens, heads, CHUNK, dtype=torch.bfloat16, device=k.device)
    for start in range(0, tokens, CHUNK):
        rows = slice(start, min(start + CHUNK, tokens))
        inverse = kkt_inverse(
            k[:, rows].transpose(1, 2).double(),
            g_cumsum[:, rows].transpose(1, 2).double(),
            beta[:, rows].transpose(1, 2).double(),
        )
        A[:, rows, :, : inverse.shape[-1]] = inverse.transpose(1, 2).to(torch.bfloat16)
    return A if out is None else out.copy_(A)


def kkt_inverse(k: torch.Tensor, g: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
    """(I + strict_lower(diag(beta) · (K Kᵀ ⊙ exp(g_i − g_j))))⁻¹ of one chunk of n tokens.

    k: [B, Hq, n, 128]; g, beta: [B, Hv, n]; returns [B, Hv, n, n], all in k's dtype.
    """
    batch, qk_heads, length, _ = k.shape
    kkt = (k @ k.mT).unsqueeze(2)
    decay = lower_decay(g).view(batch, qk_heads, -1, length, length)
    gated = (kkt * decay).view(batch, -1, length, length) * beta.unsqueeze(-1)
    identity = torch.eye(length, dtype=k.dtype, device=k.device)
    # unitriangular: the diagonal is taken as 1 and nothing above it is read
    return torch.linalg.solve_triangular(
        gated, identity.expand_as(gated), upper=False, unitriangular=True
    )


def lower_decay(g: torch.Tensor) -> torch.Tensor:
    """exp(g_i − g_j) for i >= j and 0 above the diagonal: g [..., n] -> [..., n, n].

    Masked before exp: above the diagonal the difference is positive, and where gates are strong
    its exponential overflows.
    """
    difference = g.unsqueeze(-1) - g.unsqueeze(-2)
    above = torch.ones_like(difference, dtype=torch.bool).triu(1)
    return difference.masked_fill(above, -torch.inf).exp()
