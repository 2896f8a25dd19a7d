"""Pass 1 of the scan: what each segment does to the state that enters it.

v7 without its O group: the state group, the V group and the producer. Segments here are whole: the
last one, which may end in a short chunk, needs no summary.
"""

from collections.abc import Callable
from functools import cache

import tilelang
import tilelang.language as T

CHUNK = 64
HEAD_DIM = 128
STAGES = 2
GROUP = 128
THREADS = 3 * GROUP
LOADING = 96


@cache
@tilelang.jit(
    pass_configs={
        tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True,
        tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True,
        tilelang.PassConfigKey.TL_DISABLE_THREAD_STORAGE_SYNC: True,
    }
)
def compile_summaries() -> Callable[..., None]:
    """Pass 1: of every segment but the last, what it does to the state that enters it.

    A segment maps S to M S + N. summaries[0] receives M, what becomes of the identity with V = 0;
    summaries[1] receives N, what becomes of the zero state. Both [B, segments - 1, Hv, 128, 128].
    """
    batch = T.dynamic("batch")
    tokens = T.dynamic("tokens")
    inner = T.dynamic("inner")
    qk_heads = T.dynamic("qk_heads")
    v_heads = T.dynamic("v_heads")
    qk_shape = (batch, tokens, qk_heads, HEAD_DIM)
    v_shape = (batch, tokens, v_heads, HEAD_DIM)
    gate_shape = (batch, tokens, v_heads)
    a_shape = (batch, tokens, v_heads, CHUNK)
    summaries_shape = (2, batch, inner, v_heads, HEAD_DIM, HEAD_DIM)

    @T.prim_func
    def kernel(
        k: T.Tensor(qk_shape, "bfloat16"),
        v: T.Tensor(v_shape, "bfloat16"),
        g_cumsum: T.Tensor(gate_shape, "float32"),
        beta: T.Tensor(gate_shape, "float32"),
        A: T.Tensor(a_shape, "bfloat16"),
        summaries: T.Tensor(summaries_shape, "float32"),
        segment_chunks: T.int32,
    ) -> None:
        with T.Kernel(2, v_heads, batch * inner, threads=THREADS) as (part, v_head, place):
            # A variable, so that the division happens once and not in every address.
            qk_head = T.alloc_var("int32", init=v_head // (v_heads // qk_heads))
            b = T.alloc_var("int32", init=place // inner)
            segment = T.alloc_var("int32", init=place % inner)
            before = T.alloc_var("int32", init=segment * segment_chunks)
            with_values = T.alloc_var("float32", init=T.cast(part, "float32"))
            thread = T.get_thread_binding()

            # Inputs, loaded one chunk ahead.
            k_tile = T.alloc_shared((STAGES, CHUNK, HEAD_DIM), "bfloat16")
            v_tile = T.alloc_shared((STAGES, CHUNK, HEAD_DIM), "bfloat16")
            a_tile = T.alloc_shared((STAGES, CHUNK, CHUNK), "bfloat16")
            g = T.alloc_shared((STAGES, CHUNK), "float32", scope="shared")
            beta_tile = T.alloc_shared((STAGES, CHUNK), "float32", scope="shared")

            # What one group hands to another.
            state_operand = T.alloc_shared((HEAD_DIM, HEAD_DIM), "bfloat16")
            v_new_decayed = T.alloc_shared((CHUNK, HEAD_DIM), "bfloat16")

            state = T.alloc_fragment((HEAD_DIM, HEAD_DIM), "float32")
            u = T.alloc_fragment((CHUNK, HEAD_DIM), "float32")
            values = T.alloc_fragment((CHUNK, HEAD_DIM), "bfloat16")
            decay = T.alloc_fragment((CHUNK,), "float32")
            write = T.alloc_fragment((CHUNK,), "float32")
            to_last = T.alloc_fragment((CHUNK,), "float32")
            v_new = T.alloc_fragment((CHUNK, HEAD_DIM), "float32")

            loaded = T.alloc_barrier([LOADING] * STAGES)
            released = T.alloc_barrier([2 * GROUP] * STAGES)
            state_stored = T.alloc_barrier(GROUP)
            decayed_stored = T.alloc_barrier(GROUP)

            if thread < GROUP:
                T.set_max_nreg(208, 1)
                for i, j in T.Parallel(HEAD_DIM, HEAD_DIM):
                    state[i, j] = T.if_then_else(i == j, 1.0 - with_values, 0.0)
                for chunk in T.serial(segment_chunks):
                    stage = chunk % STAGES
                    T.copy(state, state_operand)
                    T.fence_proxy_async()
                    T.barrier_arrive(state_stored)
                    T.barrier_wait(loaded[stage], chunk // STAGES % 2)
                    for i, j in T.Parallel(HEAD_DIM, HEAD_DIM):
                        state[i, j] *= T.exp(g[stage, CHUNK - 1])
                    T.barrier_wait(decayed_stored, chunk % 2)
                    T.gemm(k_tile[stage, :, :], v_new_decayed, state, transpose_A=True)
                    T.barrier_arrive(released[stage])
                T.copy(state, summaries[part, b, segment, v_head, 0:HEAD_DIM, 0:HEAD_DIM])

            elif thread < 2 * GROUP:
                T.set_max_nreg(208, 1)
                for chunk in T.serial(segment_chunks):
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
                    for i, j in T.Parallel(CHUNK, HEAD_DIM):
                        u[i, j] = write[i] * (with_values * values[i, j] - decay[i] * u[i, j])
                    T.copy(u, v_tile[stage, :, :])
                    T.fence_proxy_async()
                    T.sync_threads(1, GROUP)
                    T.gemm(a_tile[stage, :, :], v_tile[stage, :, :], v_new, clear_accum=True)
                    for i, j in T.Parallel(CHUNK, HEAD_DIM):
                        u[i, j] = v_new[i, j] * to_last[i]
                    T.copy(u, v_new_decayed)
                    T.fence_proxy_async()
                    T.barrier_arrive(decayed_stored)
                    T.barrier_arrive(released[stage])

            else:
                T.set_max_nreg(40, 0)
                if thread < 2 * GROUP + 32:
                    for chunk in T.serial(segment_chunks):
                        stage = chunk % STAGES
                        first = (before + chunk) * CHUNK
                        T.barrier_wait(released[stage], (chunk // STAGES + 1) % 2)
                        T.tma_copy(
                            k[b, first : first + CHUNK, qk_head, 0:HEAD_DIM],
                            k_tile[stage, :, :],
                            barrier=loaded[stage],
                        )
                        T.barrier_arrive(loaded[stage])
                elif thread < 2 * GROUP + 64:
                    for chunk in T.serial(segment_chunks):
                        stage = chunk % STAGES
                        first = (before + chunk) * CHUNK
                        T.barrier_wait(released[stage], (chunk // STAGES + 1) % 2)
                        T.tma_copy(
                            v[b, first : first + CHUNK, v_head, 0:HEAD_DIM],
                            v_tile[stage, :, :],
                            barrier=loaded[stage],
                        )
                        for i in T.Parallel(CHUNK):
                            beta_tile[stage, i] = beta[b, first + i, v_head]
                        T.barrier_arrive(loaded[stage])
                elif thread < 2 * GROUP + LOADING:
                    for chunk in T.serial(segment_chunks):
                        stage = chunk % STAGES
                        first = (before + chunk) * CHUNK
                        T.barrier_wait(released[stage], (chunk // STAGES + 1) % 2)
                        T.tma_copy(
                            A[b, first : first + CHUNK, v_head, 0:CHUNK],
                            a_tile[stage, :, :],
                            barrier=loaded[stage],
                        )
                        for i in T.Parallel(CHUNK):
                            g[stage, i] = g_cumsum[b, first + i, v_head]
                        T.barrier_arrive(loaded[stage])

    return kernel
