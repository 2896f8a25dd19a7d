"""v6: four warp groups, each with one job, overlap what the versions before did in a row.

The idea. A chunk's six products fall into a chain that the next chunk waits for,

    U' = K @ S,  W' = beta * (V - exp(g) * U'),  V_new = A @ W',  S = exp(g_last) * S + ...

and work beside it that no chunk waits for: Q K^T, Q @ S, P @ V_new, the output, loads and stores.
So a thread block (CTA) of 512 threads is split into four groups of 128, which run different code:

    state group   keeps S in float32 registers, hands a bfloat16 copy to the others, adds the update
    V group       U', W', V_new; writes V_new twice: decayed for the state, plain for the output
    O group       P = lower(Q K^T * exp(g_i - g_j)), then output = exp(g) * (Q @ S) + P @ V_new
    producer      a warp each for Q and K, for V and beta, for A and g; the fourth warp stores the
                  output of the chunk before, while the others compute this one

The groups meet at mbarriers only. A barrier's count is the number of threads that arrive, not of
warps: 96 for the producer's three loading warps, 384 for the three groups that release a stage,
128 for one group, 32 for the storing warp. (To let one thread of each warp arrive for all 32 is not
cheaper: with a slice of 128 long_low_gva then took 1.346 ms instead of 1.261, as graph replays.)
Barriers come in pairs: one says that data is there, the other that its memory may be overwritten.

    data is there    may be overwritten   what
    loaded[stage]    released[stage]      the input tiles; two stages, so they come a chunk ahead
    state_stored     state_read           S in bfloat16; state_read is the O group's, the V group's
                                          reading is over when decayed_stored completes
    decayed_stored   (state_stored)       V_new * exp(g_last - g); its use is over before the next S
    v_new_stored     v_new_read           V_new
    out_stored       out_written          the output tile

Chunk n waits for phase n of a barrier, so for parity n % 2. The waits for "may be overwritten" wait
for the phase before, which at chunk 0 counts as complete. No barrier of the whole CTA is left, so
the compiler is told to place none (TL_DISABLE_THREAD_STORAGE_SYNC); where the threads of one
group share a tile, the group has a named barrier. A thread that wrote shared memory which the
tensor cores or TMA read next issues fence_proxy_async first.

Registers follow the jobs (set_max_nreg): 168 a thread where S takes 128, 152 for the V and O
groups, 40 for the producer: 512 threads times 128 on average, all that an SM has.

What changed from v5: all of the above; W' replaces V in place, in shared memory; scale is folded
into P and exp(g); exp is the hardware's own (TL_ENABLE_FAST_MATH). The slice rule is v5's.

Core forward, median in ms. The last column holds the kernel to 16 SMs, with the slice that the rule
gives there (32 for chain_equal, else 128), as PyTorch reports 132 all the same:

    case              the report: H800, 14 SMs    here: H200, TileLang 0.1.15    16 SMs
    short_tail_state                   -                          0.042               0.064
    chain_equal                        -                          0.184               0.185
    parallel_equal                     -                          0.060               0.101
    parallel_gva                       -                          0.060               0.101
    long_low_gva                   2.057                          0.685               1.281
    batch_split_gva                    -                          0.188               0.655
    wide_gva_state                     -                          0.374               1.318
    deep_gva_state                     -                          0.370               1.302

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


@cache
def multiprocessors(device: torch.device) -> int:
    """The number of SMs of that GPU."""
    return torch.cuda.get_device_properties(device).multi_processor_count


def select_dv_slice(chains: int, sms: int) -> int:
    """Value columns a CTA: 32 where one CTA a chain fills less than half of the SMs, else 128."""
    return 32 if chains < sms / 2 else 128


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
    dv_slice = select_dv_slice(batch * v_heads, multiprocessors(v.device))
    kernel = compile_kernel(initial_state is not None, dv_slice)
    # Without an initial state the kernel never reads that argument; any state-shaped tensor fits.
    first_state = final_state if initial_state is None else initial_state
    kernel(q, k, v, g_cumsum, beta, A, first_state, output, final_state)
    return output, final_state
