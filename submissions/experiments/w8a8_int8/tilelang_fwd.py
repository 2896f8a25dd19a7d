"""int8, dropped: all six products with 8-bit operands, for which 5e-3 leaves no room.

The idea. The tensor cores multiply int8 twice as fast as bfloat16, and int8 operands take half the
shared memory. Every operand is scaled so that the largest entry of each row (of the left factor) or
column (of the right one) becomes 127, rounded, multiplied with int32 sums, and scaled back.
The tensor cores take 8-bit operands with the summed index running along memory only, so right
factors are stored transposed, and K is kept twice.

Why it was dropped. An entry's rounding error is up to 1/254 of the largest entry of its row, where
bfloat16's is 1/512 of the entry itself. Entries of a normal row are mostly far below the largest
one (about 2.6 standard deviations in 128), so the error of a typical entry is up to a hundredth,
five times bfloat16's. Products average some of it out, but what V_new gets wrong is added to S. By
emulation in PyTorch the final state misses the tolerance by a factor of 4.5 on short_tail_state and
4.8 on parallel_gva, in 8 and 16 % of its elements, where bfloat16 stays at 0.5 and 0.6; the output
stays within. The scaling itself costs reductions, transposes and conversions on top.

What changed from v1: the operands' type, with all that this needs. The state and all elementwise
steps stay float32. Never use this file.

docs/ladder.md has the judge's verdicts.
"""

from collections.abc import Callable
from functools import cache

import tilelang
import tilelang.language as T
import torch

CHUNK = 64
HEAD_DIM = 128
DV_SLICE = 32
THREADS = 128
SCALE = HEAD_DIM**-0.5
LARGEST = 127.0
# Keeps an all-zero row's scale away from 0 / 0.
TINY = 1e-20


@cache
@tilelang.jit(pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True})
def compile_kernel(has_initial_state: bool) -> Callable[..., None]:
    """The compiled kernel. Sizes and head counts are run-time values: one serves every case."""
    batch = T.dynamic("batch")
    tokens = T.dynamic("tokens")
    qk_heads = T.dynamic("qk_heads")
    v_heads = T.dynamic("v_heads")
    qk_shape = (batch, tokens, qk_heads, HEAD_DIM)
    v_shape = (batch, tokens, v_heads, HEAD_DIM)
    gate_shape = (batch, tokens, v_heads)
    a_shape = (batch, tokens, v_heads, CHUNK)
    state_shape = (batch, v_heads, HEAD_DIM, HEAD_DIM)

    @T.prim_func
    def kernel(
        q: T.Tensor(qk_shape, "bfloat16"),
        k: T.Tensor(qk_shape, "bfloat16"),
        v: T.Tensor(v_shape, "bfloat16"),
        g_cumsum: T.Tensor(gate_shape, "float32"),
        beta: T.Tensor(gate_shape, "float32"),
        A: T.Tensor(a_shape, "bfloat16"),
        initial_state: T.Tensor(state_shape, "float32"),
        output: T.Tensor(v_shape, "bfloat16"),
        final_state: T.Tensor(state_shape, "float32"),
    ) -> None:
        with T.Kernel(HEAD_DIM // DV_SLICE, v_heads, batch, threads=THREADS) as (
            part,
            v_head,
            b,
        ):
            # A variable, so that the division happens once and not in every address.
            qk_head = T.alloc_var("int32", init=v_head // (v_heads // qk_heads))
            dv = part * DV_SLICE

            q_tile = T.alloc_shared((CHUNK, HEAD_DIM), "bfloat16")
            k_tile = T.alloc_shared((CHUNK, HEAD_DIM), "bfloat16")
            v_tile = T.alloc_shared((CHUNK, DV_SLICE), "bfloat16")
            a_tile = T.alloc_shared((CHUNK, CHUNK), "bfloat16")
            g = T.alloc_shared((CHUNK,), "float32")
            beta_tile = T.alloc_shared((CHUNK,), "float32")

            # Operands: rows of the left factor, columns of the right one, along the summed index.
            q_rows = T.alloc_shared((CHUNK, HEAD_DIM), "int8")
            k_rows = T.alloc_shared((CHUNK, HEAD_DIM), "int8")
            k_columns = T.alloc_shared((HEAD_DIM, CHUNK), "int8")
            a_rows = T.alloc_shared((CHUNK, CHUNK), "int8")
            p_rows = T.alloc_shared((CHUNK, CHUNK), "int8")
            state_columns = T.alloc_shared((DV_SLICE, HEAD_DIM), "int8")
            w_columns = T.alloc_shared((DV_SLICE, CHUNK), "int8")
            v_new_columns = T.alloc_shared((DV_SLICE, CHUNK), "int8")
            decayed_columns = T.alloc_shared((DV_SLICE, CHUNK), "int8")

            # And what one unit of each row or column is worth.
            q_unit = T.alloc_shared((CHUNK,), "float32")
            k_unit = T.alloc_shared((CHUNK,), "float32")
            k_column_unit = T.alloc_shared((HEAD_DIM,), "float32")
            a_unit = T.alloc_shared((CHUNK,), "float32")
            p_unit = T.alloc_shared((CHUNK,), "float32")
            state_unit = T.alloc_shared((DV_SLICE,), "float32")
            w_unit = T.alloc_shared((DV_SLICE,), "float32")
            v_new_unit = T.alloc_shared((DV_SLICE,), "float32")
            decayed_unit = T.alloc_shared((DV_SLICE,), "float32")

            state = T.alloc_fragment((HEAD_DIM, DV_SLICE), "float32")
            keys = T.alloc_fragment((CHUNK, HEAD_DIM), "float32")
            keys_turned = T.alloc_fragment((HEAD_DIM, CHUNK), "float32")
            turned = T.alloc_shared((DV_SLICE, HEAD_DIM), "float32")
            state_turned = T.alloc_fragment((DV_SLICE, HEAD_DIM), "float32")
            narrow_turned = T.alloc_fragment((DV_SLICE, CHUNK), "float32")
            square = T.alloc_fragment((CHUNK, CHUNK), "float32")
            narrow = T.alloc_fragment((CHUNK, DV_SLICE), "float32")
            inverse = T.alloc_fragment((CHUNK, CHUNK), "float32")
            largest_row = T.alloc_fragment((CHUNK,), "float32")
            largest_a = T.alloc_fragment((CHUNK,), "float32")
            largest_p = T.alloc_fragment((CHUNK,), "float32")
            largest_state = T.alloc_fragment((DV_SLICE,), "float32")
            largest_key = T.alloc_fragment((HEAD_DIM,), "float32")
            largest_column = T.alloc_fragment((DV_SLICE,), "float32")
            square_sum = T.alloc_fragment((CHUNK, CHUNK), "int32")
            narrow_sum = T.alloc_fragment((CHUNK, DV_SLICE), "int32")
            state_sum = T.alloc_fragment((HEAD_DIM, DV_SLICE), "int32")
            out = T.alloc_fragment((CHUNK, DV_SLICE), "float32")

            if has_initial_state:
                T.copy(initial_state[b, v_head, 0:HEAD_DIM, dv : dv + DV_SLICE], state)
            else:
                T.clear(state)

            for chunk in T.serial(T.ceildiv(tokens, CHUNK)):
                first = chunk * CHUNK
                last = first + CHUNK
                T.copy(k[b, first:last, qk_head, 0:HEAD_DIM], k_tile, disable_tma=True)
                T.copy(q[b, first:last, qk_head, 0:HEAD_DIM], q_tile, disable_tma=True)
                T.copy(A[b, first:last, v_head, 0:CHUNK], a_tile, disable_tma=True)
                T.copy(v[b, first:last, v_head, dv : dv + DV_SLICE], v_tile, disable_tma=True)
                for i in T.Parallel(CHUNK):
                    g[i] = g_cumsum[b, T.min(first + i, tokens - 1), v_head]
                    beta_tile[i] = T.if_then_else(
                        first + i < tokens, beta[b, first + i, v_head], 0.0
                    )

                # Q, K, A: a scale for each row; K once more, for its columns.
                T.copy(q_tile, keys)
                T.reduce_absmax(keys, largest_row, dim=1)
                for i in T.Parallel(CHUNK):
                    q_unit[i] = T.max(largest_row[i], TINY) / LARGEST
                for i, j in T.Parallel(CHUNK, HEAD_DIM):
                    q_rows[i, j] = T.round(keys[i, j] / q_unit[i])
                T.copy(k_tile, keys)
                T.reduce_absmax(keys, largest_row, dim=1)
                for i in T.Parallel(CHUNK):
                    k_unit[i] = T.max(largest_row[i], TINY) / LARGEST
                for i, j in T.Parallel(CHUNK, HEAD_DIM):
                    k_rows[i, j] = T.round(keys[i, j] / k_unit[i])
                for j, i in T.Parallel(HEAD_DIM, CHUNK):
                    keys_turned[j, i] = k_tile[i, j]
                T.reduce_absmax(keys_turned, largest_key, dim=1)
                for j in T.Parallel(HEAD_DIM):
                    k_column_unit[j] = T.max(largest_key[j], TINY) / LARGEST
                for j, i in T.Parallel(HEAD_DIM, CHUNK):
                    k_columns[j, i] = T.round(keys_turned[j, i] / k_column_unit[j])
                T.copy(a_tile, inverse)
                T.reduce_absmax(inverse, largest_a, dim=1)
                for i in T.Parallel(CHUNK):
                    a_unit[i] = T.max(largest_a[i], TINY) / LARGEST
                for i, j in T.Parallel(CHUNK, CHUNK):
                    a_rows[i, j] = T.round(inverse[i, j] / a_unit[i])
                for i, j in T.Parallel(HEAD_DIM, DV_SLICE):
                    turned[j, i] = state[i, j]
                T.copy(turned, state_turned)
                T.reduce_absmax(state_turned, largest_state, dim=1)
                for j in T.Parallel(DV_SLICE):
                    state_unit[j] = T.max(largest_state[j], TINY) / LARGEST
                for j, i in T.Parallel(DV_SLICE, HEAD_DIM):
                    state_columns[j, i] = T.round(state_turned[j, i] / state_unit[j])

                # W' = beta * (V - exp(g) * (K @ S))
                T.gemm(k_rows, state_columns, narrow_sum, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(CHUNK, DV_SLICE):
                    narrow[i, j] = beta_tile[i] * (
                        v_tile[i, j] - T.exp(g[i]) * k_unit[i] * state_unit[j] * narrow_sum[i, j]
                    )
                for i, j in T.Parallel(CHUNK, DV_SLICE):
                    turned[j, i] = narrow[i, j]
                T.copy(turned[:, 0:CHUNK], narrow_turned)
                T.reduce_absmax(narrow_turned, largest_column, dim=1)
                for j in T.Parallel(DV_SLICE):
                    w_unit[j] = T.max(largest_column[j], TINY) / LARGEST
                for j, i in T.Parallel(DV_SLICE, CHUNK):
                    w_columns[j, i] = T.round(narrow_turned[j, i] / w_unit[j])

                # V_new = A @ W'
                T.gemm(a_rows, w_columns, narrow_sum, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(CHUNK, DV_SLICE):
                    narrow[i, j] = a_unit[i] * w_unit[j] * narrow_sum[i, j]
                for i, j in T.Parallel(CHUNK, DV_SLICE):
                    turned[j, i] = narrow[i, j]
                T.copy(turned[:, 0:CHUNK], narrow_turned)
                T.reduce_absmax(narrow_turned, largest_column, dim=1)
                for j in T.Parallel(DV_SLICE):
                    v_new_unit[j] = T.max(largest_column[j], TINY) / LARGEST
                for j, i in T.Parallel(DV_SLICE, CHUNK):
                    v_new_columns[j, i] = T.round(narrow_turned[j, i] / v_new_unit[j])
                for i, j in T.Parallel(CHUNK, DV_SLICE):
                    narrow[i, j] *= T.exp(g[CHUNK - 1] - g[i])
                for i, j in T.Parallel(CHUNK, DV_SLICE):
                    turned[j, i] = narrow[i, j]
                T.copy(turned[:, 0:CHUNK], narrow_turned)
                T.reduce_absmax(narrow_turned, largest_column, dim=1)
                for j in T.Parallel(DV_SLICE):
                    decayed_unit[j] = T.max(largest_column[j], TINY) / LARGEST
                for j, i in T.Parallel(DV_SLICE, CHUNK):
                    decayed_columns[j, i] = T.round(narrow_turned[j, i] / decayed_unit[j])

                # P = lower(Q K^T * exp(g_i - g_j)), masked before exp
                T.gemm(q_rows, k_rows, square_sum, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(CHUNK, CHUNK):
                    square[i, j] = (
                        q_unit[i]
                        * k_unit[j]
                        * square_sum[i, j]
                        * T.exp(T.if_then_else(i >= j, g[i] - g[j], -T.infinity("float32")))
                    )
                T.reduce_absmax(square, largest_p, dim=1)
                for i in T.Parallel(CHUNK):
                    p_unit[i] = T.max(largest_p[i], TINY) / LARGEST
                for i, j in T.Parallel(CHUNK, CHUNK):
                    p_rows[i, j] = T.round(square[i, j] / p_unit[i])

                # output = scale * (exp(g) * (Q @ S) + P @ V_new)
                T.gemm(q_rows, state_columns, narrow_sum, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(CHUNK, DV_SLICE):
                    out[i, j] = T.exp(g[i]) * q_unit[i] * state_unit[j] * narrow_sum[i, j]
                T.gemm(p_rows, v_new_columns, narrow_sum, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(CHUNK, DV_SLICE):
                    out[i, j] += p_unit[i] * v_new_unit[j] * narrow_sum[i, j]
                for i, j in T.Parallel(CHUNK, DV_SLICE):
                    if first + i < tokens:
                        output[b, first + i, v_head, dv + j] = out[i, j] * SCALE

                # S = exp(g_last) * S + K^T @ (exp(g_last - g) * V_new)
                T.gemm(k_columns, decayed_columns, state_sum, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(HEAD_DIM, DV_SLICE):
                    state[i, j] = (
                        T.exp(g[CHUNK - 1]) * state[i, j]
                        + k_column_unit[i] * decayed_unit[j] * state_sum[i, j]
                    )

            T.copy(state, final_state[b, v_head, 0:HEAD_DIM, dv : dv + DV_SLICE])

    return kernel


def gdn_prefill_forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g_cumsum: torch.Tensor,
    beta: torch.Tensor,
    A: torch.Tensor,
    initial_state: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gated DeltaNet prefill from preprocessed gates and A.

    q, k: [B, T, Hq, 128] bfloat16. v: [B, T, Hv, 128] bfloat16. g_cumsum, beta: [B, T, Hv] float32.
    A: [B, T, Hv, 64] bfloat16. initial_state: [B, Hv, 128, 128] float32, zeros where None.
    Returns output [B, T, Hv, 128] bfloat16 and final_state [B, Hv, 128, 128] float32.
    """
    batch, _, v_heads, _ = v.shape
    output = torch.empty_like(v)
    final_state = torch.empty(
        (batch, v_heads, HEAD_DIM, HEAD_DIM), dtype=torch.float32, device=v.device
    )
    kernel = compile_kernel(initial_state is not None)
    # Without an initial state the kernel never reads that argument; any state-shaped tensor fits.
    first_state = final_state if initial_state is None else initial_state
    kernel(q, k, v, g_cumsum, beta, A, first_state, output, final_state)
    return output, final_state
