"""v2b: v2 with v1's dv slice of 32, a control.

v2 changed two things at once: how tiles are loaded, and how many value columns a thread block
(CTA) keeps. Here only the loads are v2's; DV_SLICE is v1's 32. So v1 against v2b shows what TMA
brings, and v2b against v2 what the wide slice brings.

A slice of 32 makes four CTAs of each chain. That pays where chains are few and SMs idle
(chain_equal: 4 chains on 14 SMs). It costs where every SM has work already: each of the four CTAs
loads Q, K and A and computes Q K^T for itself. The two cases below move in opposite directions,
which is why v5 chooses the slice by the size of the grid.

What changed from v2: DV_SLICE, nothing else.

Core forward, median in ms:

    case              the report: H800, 14 SMs    here: H200, TileLang 0.1.15    16 of its SMs
    short_tail_state                   -                          0.082               0.141
    chain_equal                    0.986                          0.523               0.523
    parallel_equal                     -                          0.142               0.528
    parallel_gva                       -                          0.136               0.498
    long_low_gva                   6.946                          1.987               4.170
    batch_split_gva                    -                          0.551               4.197
    wide_gva_state                     -                          1.037               8.426
    deep_gva_state                     -                          1.040               8.441

These are figures of development (docs/measurements.md); docs/ladder.md has the judge's.
"""

from collections.abc import Callable
from functools import cache

import tilelang
import tilelang.language as T
import torch

CHUNK = 64
HEAD_DIM = 128
DV_SLICE = 32
COMPUTING = 256
LOADING = 128
SCALE = HEAD_DIM**-0.5


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
        with T.Kernel(HEAD_DIM // DV_SLICE, v_heads, batch, threads=COMPUTING + LOADING) as (
            part,
            v_head,
            b,
        ):
            # A variable, so that the division happens once and not in every address.
            qk_head = T.alloc_var("int32", init=v_head // (v_heads // qk_heads))
            dv = part * DV_SLICE
            thread = T.get_thread_binding()

            q_tile = T.alloc_shared((CHUNK, HEAD_DIM), "bfloat16")
            k_tile = T.alloc_shared((CHUNK, HEAD_DIM), "bfloat16")
            v_tile = T.alloc_shared((CHUNK, DV_SLICE), "bfloat16")
            a_tile = T.alloc_shared((CHUNK, CHUNK), "bfloat16")
            g = T.alloc_shared((CHUNK,), "float32")
            beta_tile = T.alloc_shared((CHUNK,), "float32")
            loaded = T.alloc_barrier(LOADING)
            released = T.alloc_barrier(COMPUTING)

            state_operand = T.alloc_shared((HEAD_DIM, DV_SLICE), "bfloat16")
            w_operand = T.alloc_shared((CHUNK, DV_SLICE), "bfloat16")
            v_new_operand = T.alloc_shared((CHUNK, DV_SLICE), "bfloat16")
            v_new_decayed = T.alloc_shared((CHUNK, DV_SLICE), "bfloat16")
            scores_operand = T.alloc_shared((CHUNK, CHUNK), "bfloat16")

            state = T.alloc_fragment((HEAD_DIM, DV_SLICE), "float32")
            u = T.alloc_fragment((CHUNK, DV_SLICE), "float32")
            v_new = T.alloc_fragment((CHUNK, DV_SLICE), "float32")
            scores = T.alloc_fragment((CHUNK, CHUNK), "float32")
            out = T.alloc_fragment((CHUNK, DV_SLICE), "float32")

            if thread < COMPUTING:
                if has_initial_state:
                    T.copy(initial_state[b, v_head, 0:HEAD_DIM, dv : dv + DV_SLICE], state)
                else:
                    T.clear(state)

                for chunk in T.serial(T.ceildiv(tokens, CHUNK)):
                    first = chunk * CHUNK
                    T.copy(state, state_operand)
                    T.barrier_wait(loaded, chunk % 2)

                    # W' = beta * (V - exp(g) * (K @ S))
                    T.gemm(k_tile, state_operand, u, clear_accum=True)
                    for i, j in T.Parallel(CHUNK, DV_SLICE):
                        w_operand[i, j] = beta_tile[i] * (v_tile[i, j] - T.exp(g[i]) * u[i, j])

                    # V_new = A @ W'
                    T.gemm(a_tile, w_operand, v_new, clear_accum=True)
                    for i, j in T.Parallel(CHUNK, DV_SLICE):
                        v_new_operand[i, j] = v_new[i, j]
                        v_new_decayed[i, j] = v_new[i, j] * T.exp(g[CHUNK - 1] - g[i])

                    # P = lower(Q K^T * exp(g_i - g_j)), masked before exp
                    T.gemm(q_tile, k_tile, scores, transpose_B=True, clear_accum=True)
                    for i, j in T.Parallel(CHUNK, CHUNK):
                        scores_operand[i, j] = scores[i, j] * T.exp(
                            T.if_then_else(i >= j, g[i] - g[j], -T.infinity("float32"))
                        )

                    # output = scale * (exp(g) * (Q @ S) + P @ V_new)
                    T.gemm(q_tile, state_operand, out, clear_accum=True)
                    for i, j in T.Parallel(CHUNK, DV_SLICE):
                        out[i, j] *= T.exp(g[i])
                    T.gemm(scores_operand, v_new_operand, out)
                    for i, j in T.Parallel(CHUNK, DV_SLICE):
                        if first + i < tokens:
                            output[b, first + i, v_head, dv + j] = out[i, j] * SCALE

                    # S = exp(g_last) * S + K^T @ (exp(g_last - g) * V_new)
                    for i, j in T.Parallel(HEAD_DIM, DV_SLICE):
                        state[i, j] *= T.exp(g[CHUNK - 1])
                    T.gemm(k_tile, v_new_decayed, state, transpose_A=True)
                    T.barrier_arrive(released)

                T.copy(state, final_state[b, v_head, 0:HEAD_DIM, dv : dv + DV_SLICE])

            else:
                for chunk in T.serial(T.ceildiv(tokens, CHUNK)):
                    first = chunk * CHUNK
                    last = first + CHUNK
                    T.barrier_wait(released, (chunk + 1) % 2)
                    T.tma_copy(k[b, first:last, qk_head, 0:HEAD_DIM], k_tile, barrier=loaded)
                    T.tma_copy(v[b, first:last, v_head, dv : dv + DV_SLICE], v_tile, barrier=loaded)
                    T.tma_copy(A[b, first:last, v_head, 0:CHUNK], a_tile, barrier=loaded)
                    T.tma_copy(q[b, first:last, qk_head, 0:HEAD_DIM], q_tile, barrier=loaded)
                    for i in T.Parallel(CHUNK):
                        g[i] = g_cumsum[b, T.min(first + i, tokens - 1), v_head]
                        beta_tile[i] = T.if_then_else(
                            first + i < tokens, beta[b, first + i, v_head], 0.0
                        )
                    T.barrier_arrive(loaded)

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
