"""v7: the dv slice follows the ratio of value heads to query/key heads.

The idea. v6's rule asks how many SMs the GPU has. v7 asks the heads. Where several value heads
share a query/key head (GVA) there tend to be many chains, and every further slice of a head loads
the same Q, K and A and computes Q K^T again: one slice of 128. Where each value head has a
query/key head of its own, chains tend to be few: slices of 64, two CTAs a chain. The number of SMs
plays no part, so a call runs the same kernel on any GPU and on any part of one.

On 16 SMs the GVA cases take as long as with v6; chain_equal, with 64 columns instead of 32, takes
28 % longer. On a whole H200 v6's rule cuts the long cases finer and is up to twice as fast.

What changed from v6: `select_dv_slice`. The chunk loop is v6's, to the letter, and v6's docstring
explains its groups, barriers and registers.

Core forward, median in ms:

    case              the report: H800, 14 SMs    here: H200, TileLang 0.1.15    16 of its SMs
    short_tail_state                   -                          0.065               0.066
    chain_equal                    0.282                          0.236               0.237
    parallel_equal                     -                          0.076               0.133
    parallel_gva                       -                          0.104               0.104
    long_low_gva                   1.477                          1.280               1.284
    batch_split_gva                    -                          0.390               0.725
    wide_gva_state                     -                          0.347               1.311
    deep_gva_state                     -                          0.670               1.304

These are figures of development (docs/measurements.md); docs/ladder.md has the judge's.
"""

from collections.abc import Callable
from functools import cache

import tilelang
import tilelang.language as T
import torch

CHUNK = 64
HEAD_DIM = 128
SCALE = HEAD_DIM**-0.5
STAGES = 2
GROUP = 128
THREADS = 4 * GROUP
LOADING = 96


@cache
@tilelang.jit(
    pass_configs={
        tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True,
        tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True,
        tilelang.PassConfigKey.TL_DISABLE_THREAD_STORAGE_SYNC: True,
    }
)
def compile_kernel(has_initial_state: bool, dv_slice: int) -> Callable[..., None]:
    """The compiled kernel for a dv slice of 32, 64 or 128. Sizes and head counts are dynamic."""
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
        with T.Kernel(HEAD_DIM // dv_slice, v_heads, batch, threads=THREADS) as (part, v_head, b):
            # A variable, so that the division happens once and not in every address.
            qk_head = T.alloc_var("int32", init=v_head // (v_heads // qk_heads))
            dv = part * dv_slice
            chunks = T.ceildiv(tokens, CHUNK)
            thread = T.get_thread_binding()

            # Inputs, loaded one chunk ahead.
            q_tile = T.alloc_shared((STAGES, CHUNK, HEAD_DIM), "bfloat16")
            k_tile = T.alloc_shared((STAGES, CHUNK, HEAD_DIM), "bfloat16")
            v_tile = T.alloc_shared((STAGES, CHUNK, dv_slice), "bfloat16")
            a_tile = T.alloc_shared((STAGES, CHUNK, CHUNK), "bfloat16")
            g = T.alloc_shared((STAGES, CHUNK), "float32", scope="shared")
            beta_tile = T.alloc_shared((STAGES, CHUNK), "float32", scope="shared")

            # What one group hands to another.
            state_operand = T.alloc_shared((HEAD_DIM, dv_slice), "bfloat16")
            v_new_decayed = T.alloc_shared((CHUNK, dv_slice), "bfloat16")
            v_new_operand = T.alloc_shared((CHUNK, dv_slice), "bfloat16")
            scores_operand = T.alloc_shared((CHUNK, CHUNK), "bfloat16")
            out_tile = T.alloc_shared((CHUNK, dv_slice), "bfloat16")

            state = T.alloc_fragment((HEAD_DIM, dv_slice), "float32")
            u = T.alloc_fragment((CHUNK, dv_slice), "float32")
            values = T.alloc_fragment((CHUNK, dv_slice), "bfloat16")
            decay = T.alloc_fragment((CHUNK,), "float32")
            write = T.alloc_fragment((CHUNK,), "float32")
            to_last = T.alloc_fragment((CHUNK,), "float32")
            from_start = T.alloc_fragment((CHUNK,), "float32")
            v_new = T.alloc_fragment((CHUNK, dv_slice), "float32")
            scores = T.alloc_fragment((CHUNK, CHUNK), "float32")
            out = T.alloc_fragment((CHUNK, dv_slice), "float32")

            loaded = T.alloc_barrier([LOADING] * STAGES)
            released = T.alloc_barrier([3 * GROUP] * STAGES)
            state_stored = T.alloc_barrier(GROUP)
            state_read = T.alloc_barrier(GROUP)
            decayed_stored = T.alloc_barrier(GROUP)
            v_new_stored = T.alloc_barrier(GROUP)
            v_new_read = T.alloc_barrier(GROUP)
            out_stored = T.alloc_barrier(GROUP)
            out_written = T.alloc_barrier(32)

            if thread < GROUP:
                T.set_max_nreg(168, 1)
                if has_initial_state:
                    T.copy(initial_state[b, v_head, 0:HEAD_DIM, dv : dv + dv_slice], state)
                else:
                    T.clear(state)
                for chunk in T.serial(chunks):
                    stage = chunk % STAGES
                    T.barrier_wait(state_read, (chunk + 1) % 2)
                    T.copy(state, state_operand)
                    T.fence_proxy_async()
                    T.barrier_arrive(state_stored)
                    T.barrier_wait(loaded[stage], chunk // STAGES % 2)
                    for i, j in T.Parallel(HEAD_DIM, dv_slice):
                        state[i, j] *= T.exp(g[stage, CHUNK - 1])
                    T.barrier_wait(decayed_stored, chunk % 2)
                    T.gemm(k_tile[stage, :, :], v_new_decayed, state, transpose_A=True)
                    T.barrier_arrive(released[stage])
                T.copy(state, final_state[b, v_head, 0:HEAD_DIM, dv : dv + dv_slice])

            elif thread < 2 * GROUP:
                T.set_max_nreg(152, 1)
                for chunk in T.serial(chunks):
                    stage = chunk % STAGES
                    T.barrier_wait(loaded[stage], chunk // STAGES % 2)
                    # Into registers before the state is there: nothing of this is on the chain.
                    for i in T.Parallel(CHUNK):
                        decay[i] = T.exp(g[stage, i])
                        write[i] = beta_tile[stage, i]
                        to_last[i] = T.exp(g[stage, CHUNK - 1] - g[stage, i])
                    T.copy(v_tile[stage, :, :], values)
                    T.barrier_wait(state_stored, chunk % 2)
                    T.gemm(k_tile[stage, :, :], state_operand, u, clear_accum=True)
                    for i, j in T.Parallel(CHUNK, dv_slice):
                        u[i, j] = write[i] * (values[i, j] - decay[i] * u[i, j])
                    T.copy(u, v_tile[stage, :, :])
                    T.fence_proxy_async()
                    T.sync_threads(1, GROUP)
                    T.gemm(a_tile[stage, :, :], v_tile[stage, :, :], v_new, clear_accum=True)
                    for i, j in T.Parallel(CHUNK, dv_slice):
                        u[i, j] = v_new[i, j] * to_last[i]
                    T.copy(u, v_new_decayed)
                    T.fence_proxy_async()
                    T.barrier_arrive(decayed_stored)
                    T.barrier_arrive(released[stage])
                    # The chain goes on without this group; the O group may be behind.
                    T.barrier_wait(v_new_read, (chunk + 1) % 2)
                    T.copy(v_new, v_new_operand)
                    T.fence_proxy_async()
                    T.barrier_arrive(v_new_stored)

            elif thread < 3 * GROUP:
                T.set_max_nreg(152, 1)
                for chunk in T.serial(chunks):
                    stage = chunk % STAGES
                    T.barrier_wait(loaded[stage], chunk // STAGES % 2)
                    T.gemm(
                        q_tile[stage, :, :],
                        k_tile[stage, :, :],
                        scores,
                        transpose_B=True,
                        clear_accum=True,
                    )
                    # Masked before exp: above the diagonal the exponent is positive, and large
                    # where gates are strong.
                    for i, j in T.Parallel(CHUNK, CHUNK):
                        scores[i, j] *= SCALE * T.exp(
                            T.if_then_else(
                                i >= j, g[stage, i] - g[stage, j], -T.infinity("float32")
                            )
                        )
                    T.copy(scores, scores_operand)
                    T.fence_proxy_async()
                    T.sync_threads(2, GROUP)
                    for i in T.Parallel(CHUNK):
                        from_start[i] = SCALE * T.exp(g[stage, i])
                    T.barrier_wait(state_stored, chunk % 2)
                    T.gemm(q_tile[stage, :, :], state_operand, out, clear_accum=True)
                    T.barrier_arrive(state_read)
                    for i, j in T.Parallel(CHUNK, dv_slice):
                        out[i, j] *= from_start[i]
                    T.barrier_arrive(released[stage])
                    T.barrier_wait(v_new_stored, chunk % 2)
                    T.gemm(scores_operand, v_new_operand, out)
                    T.barrier_arrive(v_new_read)
                    T.barrier_wait(out_written, (chunk + 1) % 2)
                    T.copy(out, out_tile)
                    T.fence_proxy_async()
                    T.barrier_arrive(out_stored)

            else:
                T.set_max_nreg(40, 0)
                if thread < 3 * GROUP + 32:
                    for chunk in T.serial(chunks):
                        stage = chunk % STAGES
                        first = chunk * CHUNK
                        T.barrier_wait(released[stage], (chunk // STAGES + 1) % 2)
                        T.tma_copy(
                            k[b, first : first + CHUNK, qk_head, 0:HEAD_DIM],
                            k_tile[stage, :, :],
                            barrier=loaded[stage],
                        )
                        T.tma_copy(
                            q[b, first : first + CHUNK, qk_head, 0:HEAD_DIM],
                            q_tile[stage, :, :],
                            barrier=loaded[stage],
                        )
                        T.barrier_arrive(loaded[stage])
                elif thread < 3 * GROUP + 64:
                    for chunk in T.serial(chunks):
                        stage = chunk % STAGES
                        first = chunk * CHUNK
                        T.barrier_wait(released[stage], (chunk // STAGES + 1) % 2)
                        T.tma_copy(
                            v[b, first : first + CHUNK, v_head, dv : dv + dv_slice],
                            v_tile[stage, :, :],
                            barrier=loaded[stage],
                        )
                        for i in T.Parallel(CHUNK):
                            beta_tile[stage, i] = T.if_then_else(
                                first + i < tokens, beta[b, first + i, v_head], 0.0
                            )
                        T.barrier_arrive(loaded[stage])
                elif thread < 3 * GROUP + LOADING:
                    for chunk in T.serial(chunks):
                        stage = chunk % STAGES
                        first = chunk * CHUNK
                        T.barrier_wait(released[stage], (chunk // STAGES + 1) % 2)
                        T.tma_copy(
                            A[b, first : first + CHUNK, v_head, 0:CHUNK],
                            a_tile[stage, :, :],
                            barrier=loaded[stage],
                        )
                        for i in T.Parallel(CHUNK):
                            g[stage, i] = g_cumsum[b, T.min(first + i, tokens - 1), v_head]
                        T.barrier_arrive(loaded[stage])
                else:
                    for chunk in T.serial(chunks):
                        first = chunk * CHUNK
                        T.barrier_wait(out_stored, chunk % 2)
                        T.copy(
                            out_tile,
                            output[b, first : first + CHUNK, v_head, dv : dv + dv_slice],
                        )
                        T.barrier_arrive(out_written)

    return kernel


def select_dv_slice(v_heads: int, qk_heads: int) -> int:
    """Value columns a CTA: 64 where every value head has its own query/key head, else 128."""
    return 64 if v_heads == qk_heads else 128


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
    dv_slice = select_dv_slice(v_heads, q.shape[2])
    kernel = compile_kernel(initial_state is not None, dv_slice)
    # Without an initial state the kernel never reads that argument; any state-shaped tensor fits.
    first_state = final_state if initial_state is None else initial_state
    kernel(q, k, v, g_cumsum, beta, A, first_state, output, final_state)
    return output, final_state
