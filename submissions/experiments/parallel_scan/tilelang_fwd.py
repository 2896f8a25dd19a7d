"""scan, dropped on 14 SMs: an exact scan over segments, for when chains are fewer than SMs.

The idea. A chunk maps the state linearly, S' = M S + N, and so does any run of chunks. So a
sequence can be cut into segments that run side by side, once each knows the state that enters it:

    pass 1  segment_summaries.py: all segments but the last find their M and N, side by side. M is
            what becomes of the identity with V = 0, N what becomes of the zero state
    pass 2  start_states.py: S of segment n + 1 is M_n S_n + N_n, one segment after the other
    pass 3  this file: v7 on every segment, side by side, each from its own start

Nothing is approximated: no decay is assumed to have forgotten anything. M_n S_n acts on the state
itself, where bfloat16 operands would cost up to 2^-9 of it in every segment, so pass 2 splits both
factors into a high and a low bfloat16 half and adds three products.

What it costs. Pass 1 computes the chain twice, for M and for N. Where n chunks are cut into s
segments, a chain of n steps becomes n / s steps of pass 1, while SMs are free for its two CTAs a
segment, s short steps of pass 2 and n / s steps of pass 3. On 14 SMs and 8 chains or more there is
no SM to put a second segment on; the report tried it there and gained nothing. With one segment,
which is what `segmentation` chooses there, pass 1 does not run.

What changed from v7: two more kernels; the start states; a dv slice of 128 throughout.

On a whole H200 it is four times as fast as v7 on long_low_gva (8 chains become 128 segments), and
no faster on wide_gva_state, whose 64 chains become 128 segments that each pay for pass 1.

Core forward, median in ms, measured before registers moved between the groups; not since:

    case              the report: H800 PCIe, MIG slice, 14 SMs       here: H200, TileLang 0.1.15
    short_tail_state                      -                          0.101
    chain_equal                           -                          0.129
    parallel_equal                        -                          0.102
    parallel_gva                          -                          0.102
    long_low_gva                    no gain                          0.299
    batch_split_gva                       -                          0.258
    wide_gva_state                        -                          0.339
    deep_gva_state                        -                          0.449

These are figures of development (docs/measurements.md); docs/ladder.md has the judge's.
"""

from collections.abc import Callable
from functools import cache

import tilelang
import tilelang.language as T
import torch
from segment_summaries import compile_summaries
from start_states import compile_start_states

CHUNK = 64
HEAD_DIM = 128
SCALE = HEAD_DIM**-0.5
STAGES = 2
GROUP = 128
THREADS = 4 * GROUP
LOADING = 96
MIN_CHUNKS = 8


@cache
@tilelang.jit(
    pass_configs={
        tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True,
        tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True,
        tilelang.PassConfigKey.TL_DISABLE_THREAD_STORAGE_SYNC: True,
    }
)
def compile_kernel() -> Callable[..., None]:
    """Pass 3: v7's kernel, one CTA a segment; every segment starts from a state that is given."""
    batch = T.dynamic("batch")
    tokens = T.dynamic("tokens")
    segments = T.dynamic("segments")
    qk_heads = T.dynamic("qk_heads")
    v_heads = T.dynamic("v_heads")
    qk_shape = (batch, tokens, qk_heads, HEAD_DIM)
    v_shape = (batch, tokens, v_heads, HEAD_DIM)
    gate_shape = (batch, tokens, v_heads)
    a_shape = (batch, tokens, v_heads, CHUNK)
    state_shape = (batch, v_heads, HEAD_DIM, HEAD_DIM)
    starts_shape = (batch, segments, v_heads, HEAD_DIM, HEAD_DIM)

    @T.prim_func
    def kernel(
        q: T.Tensor(qk_shape, "bfloat16"),
        k: T.Tensor(qk_shape, "bfloat16"),
        v: T.Tensor(v_shape, "bfloat16"),
        g_cumsum: T.Tensor(gate_shape, "float32"),
        beta: T.Tensor(gate_shape, "float32"),
        A: T.Tensor(a_shape, "bfloat16"),
        starts: T.Tensor(starts_shape, "float32"),
        output: T.Tensor(v_shape, "bfloat16"),
        final_state: T.Tensor(state_shape, "float32"),
        segment_chunks: T.int32,
    ) -> None:
        with T.Kernel(v_heads, batch * segments, threads=THREADS) as (v_head, place):
            # A variable, so that the division happens once and not in every address.
            qk_head = T.alloc_var("int32", init=v_head // (v_heads // qk_heads))
            b = T.alloc_var("int32", init=place // segments)
            segment = T.alloc_var("int32", init=place % segments)
            before = T.alloc_var("int32", init=segment * segment_chunks)
            chunks = T.alloc_var(
                "int32", init=T.min(segment_chunks, T.ceildiv(tokens, CHUNK) - before)
            )
            thread = T.get_thread_binding()

            # Inputs, loaded one chunk ahead.
            q_tile = T.alloc_shared((STAGES, CHUNK, HEAD_DIM), "bfloat16")
            k_tile = T.alloc_shared((STAGES, CHUNK, HEAD_DIM), "bfloat16")
            v_tile = T.alloc_shared((STAGES, CHUNK, HEAD_DIM), "bfloat16")
            a_tile = T.alloc_shared((STAGES, CHUNK, CHUNK), "bfloat16")
            g = T.alloc_shared((STAGES, CHUNK), "float32", scope="shared")
            beta_tile = T.alloc_shared((STAGES, CHUNK), "float32", scope="shared")

            # What one group hands to another.
            state_operand = T.alloc_shared((HEAD_DIM, HEAD_DIM), "bfloat16")
            v_new_decayed = T.alloc_shared((CHUNK, HEAD_DIM), "bfloat16")
            v_new_operand = T.alloc_shared((CHUNK, HEAD_DIM), "bfloat16")
            scores_operand = T.alloc_shared((CHUNK, CHUNK), "bfloat16")
            out_tile = T.alloc_shared((CHUNK, HEAD_DIM), "bfloat16")

            state = T.alloc_fragment((HEAD_DIM, HEAD_DIM), "float32")
            u = T.alloc_fragment((CHUNK, HEAD_DIM), "float32")
            values = T.alloc_fragment((CHUNK, HEAD_DIM), "bfloat16")
            decay = T.alloc_fragment((CHUNK,), "float32")
            write = T.alloc_fragment((CHUNK,), "float32")
            to_last = T.alloc_fragment((CHUNK,), "float32")
            from_start = T.alloc_fragment((CHUNK,), "float32")
            v_new = T.alloc_fragment((CHUNK, HEAD_DIM), "float32")
            scores = T.alloc_fragment((CHUNK, CHUNK), "float32")
            out = T.alloc_fragment((CHUNK, HEAD_DIM), "float32")

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
                T.set_max_nreg(184, 1)
                T.copy(starts[b, segment, v_head, 0:HEAD_DIM, 0:HEAD_DIM], state)
                for chunk in T.serial(chunks):
                    stage = chunk % STAGES
                    T.barrier_wait(state_read, (chunk + 1) % 2)
                    T.copy(state, state_operand)
                    T.fence_proxy_async()
                    T.barrier_arrive(state_stored)
                    T.barrier_wait(loaded[stage], chunk // STAGES % 2)
                    for i, j in T.Parallel(HEAD_DIM, HEAD_DIM):
                        state[i, j] *= T.exp(g[stage, CHUNK - 1])
                    T.barrier_wait(decayed_stored, chunk % 2)
                    T.gemm(k_tile[stage, :, :], v_new_decayed, state, transpose_A=True)
                    T.barrier_arrive(released[stage])
                if segment == segments - 1:
                    T.copy(state, final_state[b, v_head, 0:HEAD_DIM, 0:HEAD_DIM])

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
                    for i, j in T.Parallel(CHUNK, HEAD_DIM):
                        u[i, j] = write[i] * (values[i, j] - decay[i] * u[i, j])
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
                    # The chain goes on without this group; the O group may be behind.
                    T.barrier_wait(v_new_read, (chunk + 1) % 2)
                    T.copy(v_new, v_new_operand)
                    T.fence_proxy_async()
                    T.barrier_arrive(v_new_stored)

            elif thread < 3 * GROUP:
                T.set_max_nreg(136, 1)
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
                    for i, j in T.Parallel(CHUNK, HEAD_DIM):
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
                        first = (before + chunk) * CHUNK
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
                        first = (before + chunk) * CHUNK
                        T.barrier_wait(released[stage], (chunk // STAGES + 1) % 2)
                        T.tma_copy(
                            v[b, first : first + CHUNK, v_head, 0:HEAD_DIM],
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
                        first = (before + chunk) * CHUNK
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
                        first = (before + chunk) * CHUNK
                        T.barrier_wait(out_stored, chunk % 2)
                        T.copy(
                            out_tile,
                            output[b, first : first + CHUNK, v_head, 0:HEAD_DIM],
                        )
                        T.barrier_arrive(out_written)

    return kernel


@cache
def multiprocessors(device: torch.device) -> int:
    """The number of SMs of that GPU."""
    return torch.cuda.get_device_properties(device).multi_processor_count


def segmentation(tokens: int, chains: int, sms: int) -> tuple[int, int]:
    """How a sequence is cut: number of segments, chunks a segment (the last may hold fewer).

    As many segments as give every SM a chain, but none shorter than MIN_CHUNKS.
    """
    chunks = -(-tokens // CHUNK)
    wanted = max(1, min(sms // chains, chunks // MIN_CHUNKS))
    segment_chunks = -(-chunks // wanted)
    return -(-chunks // segment_chunks), segment_chunks


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
    batch, tokens, v_heads, _ = v.shape
    state_shape = (batch, v_heads, HEAD_DIM, HEAD_DIM)
    output = torch.empty_like(v)
    final_state = torch.empty(state_shape, dtype=torch.float32, device=v.device)
    segments, segment_chunks = segmentation(tokens, batch * v_heads, multiprocessors(v.device))
    starts_shape = (batch, segments, v_heads, HEAD_DIM, HEAD_DIM)
    starts = torch.empty(starts_shape, dtype=torch.float32, device=v.device)
    summaries = torch.empty(
        (2, batch, segments - 1, v_heads, HEAD_DIM, HEAD_DIM), dtype=torch.float32, device=v.device
    )
    if segments > 1:
        compile_summaries()(k, v, g_cumsum, beta, A, summaries, segment_chunks)
    # Without an initial state the kernel never reads that argument; any state-shaped tensor fits.
    first_state = final_state if initial_state is None else initial_state
    compile_start_states(initial_state is not None)(summaries, first_state, starts)
    compile_kernel()(q, k, v, g_cumsum, beta, A, starts, output, final_state, segment_chunks)
    return output, final_state
