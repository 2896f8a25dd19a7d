"""The untimed preprocessing on a GPU: the gate's prefix sum and the inverse matrix A of each chunk.

Both kernels take batch, tokens and heads as run-time values, so one compiled kernel of each serves
every case; nothing is compiled when this module is imported.
"""

from collections.abc import Callable
from functools import cache

import tilelang
import tilelang.language as T
import torch

CHUNK = 64
HEAD_DIM = 128
HEADS_PER_BLOCK = 32
WARP_GROUP = 128

_NO_WARP_SPECIALIZATION = {tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True}


@cache
@tilelang.jit(pass_configs=_NO_WARP_SPECIALIZATION)
def chunk_cumsum_kernel() -> Callable[..., None]:
    batch = T.dynamic("batch")
    tokens = T.dynamic("tokens")
    heads = T.dynamic("heads")

    @T.prim_func
    def chunk_cumsum(
        raw_g: T.Tensor((batch, tokens, heads), "float32"),
        g_cumsum: T.Tensor((batch, tokens, heads), "float32"),
    ) -> None:
        with T.Kernel(
            T.ceildiv(tokens, CHUNK),
            T.ceildiv(heads, HEADS_PER_BLOCK),
            batch,
            threads=HEADS_PER_BLOCK,
        ) as (chunk, head_block, b):
            # float64, so that each sum is rounded once and the CPU's result is met exactly.
            total = T.alloc_fragment((HEADS_PER_BLOCK,), "float64")
            T.clear(total)
            for i in T.serial(CHUNK):
                for lane in T.Parallel(HEADS_PER_BLOCK):
                    token = chunk * CHUNK + i
                    head = head_block * HEADS_PER_BLOCK + lane
                    if token < tokens and head < heads:
                        total[lane] += T.cast(raw_g[b, token, head], "float64")
                        g_cumsum[b, token, head] = T.cast(total[lane], "float32")

    return chunk_cumsum


@cache
@tilelang.jit(pass_configs=_NO_WARP_SPECIALIZATION)
def gated_kkt_inverse_kernel() -> Callable[..., None]:
    batch = T.dynamic("batch")
    tokens = T.dynamic("tokens")
    qk_heads = T.dynamic("qk_heads")
    v_heads = T.dynamic("v_heads")

    @T.prim_func
    def gated_kkt_inverse(
        k: T.Tensor((batch, tokens, qk_heads, HEAD_DIM), "bfloat16"),
        g_cumsum: T.Tensor((batch, tokens, v_heads), "float32"),
        beta: T.Tensor((batch, tokens, v_heads), "float32"),
        A: T.Tensor((batch, tokens, v_heads, CHUNK), "bfloat16"),
    ) -> None:
        with T.Kernel(T.ceildiv(tokens, CHUNK), v_heads, batch, threads=WARP_GROUP) as (
            chunk,
            v_head,
            b,
        ):
            first = chunk * CHUNK
            qk_head = T.alloc_var("int32", init=v_head // (v_heads // qk_heads))
            k_tile = T.alloc_shared((CHUNK, HEAD_DIM), "bfloat16")
            g = T.alloc_shared((CHUNK,), "float32")
            beta_tile = T.alloc_shared((CHUNK,), "float32")
            kkt = T.alloc_fragment((CHUNK, CHUNK), "float32")
            lower = T.alloc_shared((CHUNK, CHUNK), "float32")
            x = T.alloc_local((CHUNK,), "float32")

            # Rows past the last token are loaded as zeros, which makes theirs the identity's rows.
            T.copy(k[b, first : first + CHUNK, qk_head, 0:HEAD_DIM], k_tile, disable_tma=True)
            for i in T.Parallel(CHUNK):
                g[i] = g_cumsum[b, T.min(first + i, tokens - 1), v_head]
                beta_tile[i] = T.if_then_else(first + i < tokens, beta[b, first + i, v_head], 0.0)

            T.gemm(k_tile, k_tile, kkt, transpose_B=True, clear_accum=True)
            for i, j in T.Parallel(CHUNK, CHUNK):
                # Masked before exp: above the diagonal exp(g_i - g_j) overflows under hard gates.
                lower[i, j] = (
                    beta_tile[i]
                    * kkt[i, j]
                    * T.exp(T.if_then_else(i > j, g[i] - g[j], -T.infinity("float32")))
                )

            # Column `column` of (I + lower)^-1 by forward substitution, one thread a column.
            column = T.get_thread_binding()
            if column < CHUNK:
                for i in T.unroll(CHUNK):
                    x[i] = T.if_then_else(i == column, 1.0, 0.0)
                    for m in T.unroll(i):
                        x[i] -= lower[i, m] * x[m]
                    if first + i < tokens:
                        A[b, first + i, v_head, column] = x[i]

    return gated_kkt_inverse


def chunk_cumsum(raw_g: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """Prefix sum of the log-space gate that restarts at every 64-token chunk.

    raw_g, out and the result: [B, T, H] float32, contiguous, on a CUDA device.
    """
    if out is None:
        out = torch.empty_like(raw_g)
    chunk_cumsum_kernel()(raw_g, out)
    return out


def gated_kkt_inverse(
    k: torch.Tensor,
    g_cumsum: torch.Tensor,
    beta: torch.Tensor,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """A = (I + strict_lower(diag(beta) (K K^T * exp(g_i - g_j))))^-1 of each chunk and value head.

    k: [B, T, Hq, 128] bfloat16. g_cumsum, beta: [B, T, Hv] float32, Hv a multiple of Hq; value head
    h uses key head h // (Hv // Hq). Result and out: [B, T, Hv, 64] bfloat16, row t holding row
    t % 64 of its chunk's inverse; columns past the end of a short last chunk are zero.
    Computed in float32 and rounded once; all tensors contiguous, on one CUDA device.
    """
    if out is None:
        batch, tokens, v_heads = g_cumsum.shape
        out = torch.empty((batch, tokens, v_heads, CHUNK), dtype=k.dtype, device=k.device)
    gated_kkt_inverse_kernel()(k, g_cumsum, beta, out)
    return out


def compile_kernels() -> None:
    """Compile both kernels, or load them from TileLang's cache, without running them."""
    chunk_cumsum_kernel()
    gated_kkt_inverse_kernel()
