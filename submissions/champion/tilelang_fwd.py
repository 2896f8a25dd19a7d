"""champion: a state that stays in registers, and sequences cut into segments that run side by side.

It compiles, and its segments were emulated; it has not run on a GPU yet, so nothing is measured.

Two ideas, one for each half of the time that v14 takes.

A cheaper step. From v6 on, S, W' and V_new go from warp group to warp group through shared memory,
and the chain waits at every hand-over. Here every product is transposed, so that the accumulator of
one is the left operand of the next, rounded to bfloat16 where it lies:

    U'^T    = S^T @ K^T                                    128 value columns x 64 tokens
    W'^T    = beta * V^T - beta * exp(g) * U'^T            a factor a token: a factor a column
    V_new^T = W'^T @ A^T
    S^T     = exp(g_last) * S^T + (exp(g_last - g) * V_new^T) @ K
    O^T     = scale * exp(g) * (S^T @ Q^T) + V_new^T @ P^T
              where P = scale * lower(Q K^T * exp(g_i - g_j))

Rows are value columns, and rows never meet: two state groups of 128 threads hold 64 rows each and
wait for nobody but the loads. While one rounds and scales, the other keeps the tensor cores busy. A
third group computes P, up to two chunks ahead. Of the last group one warp loads, one stores the
output, and two turn gates into factors. V is read and O is written by the transposing ldmatrix and
stmatrix.

More chains. With few heads most SMs have nothing to do, so a sequence is cut into segments, a CTA
each. A segment needs the state before its first chunk. A chunk is a contraction times its gate, so
what came before the last chunks is forgotten by exp(the sum of their gates), see docs/champion.md:
each CTA reads the gates backwards until that is below exp(FORGOTTEN), starts there from zero, and
runs those chunks without output first. Gates that do not forget lead it back to the first chunk and
the initial state, which is exact. No CTA waits for another one.

    barrier pair                        what is handed over
    loaded, released [stage]            K, Q, V and A of a chunk; three stages
    factors_stored, factors_read [2]    g, beta, beta * exp(g), exp(g_last - g), scale * exp(g)
    scores_stored, scores_read [2]      P
    out_stored, out_written             the output tile

Products are issued early and waited for late: S^T @ Q^T runs while W' is computed. That takes 208
registers a thread in the state groups (S 64, its rounding 32, accumulators and operands of 16 to 32
each); with 200 ptxas makes every product wait for the one before. P's group has 64, the last 32.
Needs TileLang 0.1.15 (T.wgmma_gemm).
"""

from collections.abc import Callable, Sequence
from functools import cache, partial

import tilelang
import tilelang.language as T
import torch
from tilelang.layout import make_full_bank_swizzled_layout

CHUNK = 64
HEAD_DIM = 128
SCALE = HEAD_DIM**-0.5
STAGES = 3
GROUP = 128
STATE_THREADS = 2 * GROUP
THREADS = 4 * GROUP
LOOK_BACK = 128
# Rows of a chunk's factors: g, beta, beta * exp(g), exp(g_last - g), scale * exp(g).
G, WRITE, FORGET, TO_LAST, FROM_START = range(5)
FORGOTTEN = -14.0
# What a warm-up is taken to cost, in chunks with output: five chunks of random_decay, without
# the three products that only the output needs.
WARM_UP = 3

gemm = partial(T.wgmma_gemm, policy=T.GemmWarpPolicy.FullRow)


def transposed_accumulator(row: int, column: int) -> tuple[int, int]:
    """The thread and its register that hold element [column, row] of a 128 x 64 accumulator."""
    thread = column // 16 * 32 + column % 8 * 4 + row % 8 // 2
    return thread, row // 8 * 4 + column % 16 // 8 * 2 + row % 2


@cache
@tilelang.jit(
    pass_configs={
        tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True,
        tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True,
        tilelang.PassConfigKey.TL_DISABLE_THREAD_STORAGE_SYNC: True,
    }
)
def compile_kernel(has_initial_state: bool) -> Callable[..., None]:
    """The compiled kernel. Sizes, head counts and the cut into segments are dynamic."""
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
        segments: T.int32,
        lead: T.int32,
        segment_chunks: T.int32,
    ) -> None:
        with T.Kernel(segments, v_heads, batch, threads=THREADS) as (segment, v_head, b):
            thread = T.get_thread_binding()
            qk_head = T.alloc_var("int32", init=v_head // (v_heads // qk_heads))
            chunks = T.ceildiv(tokens, CHUNK)
            begin = T.alloc_var(
                "int32", init=T.if_then_else(segment == 0, 0, lead + segment * segment_chunks)
            )
            end = T.alloc_var("int32", init=T.min(chunks, lead + (segment + 1) * segment_chunks))
            start = T.alloc_var("int32", init=begin)

            # Inputs, loaded up to two chunks ahead. The stages of v are one matrix, because
            # ldmatrix is chosen for plain matrices only.
            q_tile = T.alloc_shared((STAGES, CHUNK, HEAD_DIM), "bfloat16")
            k_tile = T.alloc_shared((STAGES, CHUNK, HEAD_DIM), "bfloat16")
            v_tile = T.alloc_shared((STAGES * CHUNK, HEAD_DIM), "bfloat16")
            a_tile = T.alloc_shared((STAGES, CHUNK, CHUNK), "bfloat16")

            # What the other groups hand to the state groups.
            scores_tile = T.alloc_shared((2, CHUNK, CHUNK), "bfloat16")
            factors = T.alloc_shared((2, 5, CHUNK), "float32", scope="shared")

            out_tile = T.alloc_shared((CHUNK, HEAD_DIM), "bfloat16")
            chunk_gates = T.alloc_shared((LOOK_BACK,), "float32", scope="shared")

            # Transposed: a thread holds the same elements of all of them.
            state = T.alloc_fragment((HEAD_DIM, HEAD_DIM), "float32")
            state_operand = T.alloc_fragment((HEAD_DIM, HEAD_DIM), "bfloat16")
            values = T.alloc_fragment((CHUNK, HEAD_DIM), "bfloat16")
            u = T.alloc_fragment((HEAD_DIM, CHUNK), "float32")
            w_operand = T.alloc_fragment((HEAD_DIM, CHUNK), "bfloat16")
            v_new = T.alloc_fragment((HEAD_DIM, CHUNK), "float32")
            v_new_operand = T.alloc_fragment((HEAD_DIM, CHUNK), "bfloat16")
            v_new_decayed = T.alloc_fragment((HEAD_DIM, CHUNK), "bfloat16")
            out = T.alloc_fragment((HEAD_DIM, CHUNK), "float32")
            out_rows = T.alloc_fragment((CHUNK, HEAD_DIM), "bfloat16")
            scores = T.alloc_fragment((CHUNK, CHUNK), "float32")
            T.annotate_layout(
                {
                    v_tile: make_full_bank_swizzled_layout(v_tile),
                    out_tile: make_full_bank_swizzled_layout(out_tile),
                    values: T.Fragment((CHUNK, HEAD_DIM), forward_fn=transposed_accumulator),
                    out_rows: T.Fragment((CHUNK, HEAD_DIM), forward_fn=transposed_accumulator),
                }
            )

            loaded = T.alloc_barrier([32] * STAGES)
            released = T.alloc_barrier([STATE_THREADS + GROUP] * STAGES)
            factors_stored = T.alloc_barrier([CHUNK] * 2)
            factors_read = T.alloc_barrier([STATE_THREADS + GROUP] * 2)
            scores_stored = T.alloc_barrier([GROUP] * 2)
            scores_read = T.alloc_barrier([STATE_THREADS] * 2)
            out_stored = T.alloc_barrier(STATE_THREADS)
            out_written = T.alloc_barrier(32)

            # Back from the segment's first chunk until the gates have forgotten what was before.
            decayed = T.alloc_var("float32", init=0.0)
            while start > 0 and decayed > FORGOTTEN:
                T.sync_threads()
                if thread < LOOK_BACK and thread < start:
                    chunk_gates[thread] = g_cumsum[b, (start - thread) * CHUNK - 1, v_head]
                T.sync_threads()
                seen = T.alloc_var("int32", init=T.min(LOOK_BACK, start))
                n = T.alloc_var("int32", init=0)
                while n < seen and decayed > FORGOTTEN:
                    decayed = decayed + chunk_gates[n]
                    n = n + 1
                start = start - n

            if thread < STATE_THREADS:
                T.set_max_nreg(208, 1)
                if has_initial_state:
                    if start == 0:
                        for i, j in T.Parallel(HEAD_DIM, HEAD_DIM):
                            state[i, j] = initial_state[b, v_head, j, i]
                    else:
                        T.clear(state)
                else:
                    T.clear(state)
                for first, last, with_output in ((start, begin, False), (begin, end, True)):
                    for chunk in T.serial(first, last):
                        step = chunk - start
                        stage = step % STAGES
                        half = step % 2
                        T.copy(state, state_operand)
                        T.barrier_wait(loaded[stage], step // STAGES % 2)
                        gemm(
                            state_operand,
                            k_tile[stage, :, :],
                            u,
                            transpose_B=True,
                            clear_accum=True,
                        )
                        if with_output:
                            gemm(
                                state_operand,
                                q_tile[stage, :, :],
                                out,
                                transpose_B=True,
                                clear_accum=True,
                            )
                        T.copy(v_tile[stage * CHUNK : (stage + 1) * CHUNK, :], values)
                        T.barrier_wait(factors_stored[half], step // 2 % 2)
                        keep = T.exp(factors[half, G, CHUNK - 1])
                        for i, j in T.Parallel(HEAD_DIM, HEAD_DIM):
                            state[i, j] *= keep
                        T.wait_wgmma(1 if with_output else 0)
                        T.warpgroup_fence_operand(u, num_regs=32)
                        for i, j in T.Parallel(HEAD_DIM, CHUNK):
                            w_operand[i, j] = (
                                factors[half, WRITE, j] * values[j, i]
                                - factors[half, FORGET, j] * u[i, j]
                            )
                        gemm(
                            w_operand,
                            a_tile[stage, :, :],
                            v_new,
                            transpose_B=True,
                            clear_accum=True,
                        )
                        T.wait_wgmma(0)
                        T.warpgroup_fence_operand(v_new, num_regs=32)
                        for i, j in T.Parallel(HEAD_DIM, CHUNK):
                            v_new_decayed[i, j] = v_new[i, j] * factors[half, TO_LAST, j]
                        gemm(v_new_decayed, k_tile[stage, :, :], state)
                        if with_output:
                            T.warpgroup_fence_operand(out, num_regs=32)
                            T.copy(v_new, v_new_operand)
                            for i, j in T.Parallel(HEAD_DIM, CHUNK):
                                out[i, j] *= factors[half, FROM_START, j]
                            T.barrier_arrive(factors_read[half])
                            T.barrier_wait(
                                scores_stored[(chunk - begin) % 2], (chunk - begin) // 2 % 2
                            )
                            gemm(
                                v_new_operand,
                                scores_tile[(chunk - begin) % 2, :, :],
                                out,
                                transpose_B=True,
                            )
                            T.wait_wgmma(1)
                            T.warpgroup_fence_operand(state, num_regs=64)
                            T.barrier_arrive(released[stage])
                            T.wait_wgmma(0)
                            T.warpgroup_fence_operand(out, num_regs=32)
                            T.barrier_arrive(scores_read[(chunk - begin) % 2])
                            for i, j in T.Parallel(HEAD_DIM, CHUNK):
                                out_rows[j, i] = out[i, j]
                            T.barrier_wait(out_written, (chunk - begin + 1) % 2)
                            T.copy(out_rows, out_tile)
                            T.fence_proxy_async()
                            T.barrier_arrive(out_stored)
                        else:
                            T.barrier_arrive(factors_read[half])
                            T.wait_wgmma(0)
                            T.warpgroup_fence_operand(state, num_regs=64)
                            T.barrier_arrive(released[stage])
                if end == chunks:
                    for i, j in T.Parallel(HEAD_DIM, HEAD_DIM):
                        final_state[b, v_head, j, i] = state[i, j]

            elif thread < STATE_THREADS + GROUP:
                T.set_max_nreg(64, 0)
                for first, last, with_output in ((start, begin, False), (begin, end, True)):
                    for chunk in T.serial(first, last):
                        step = chunk - start
                        stage = step % STAGES
                        half = step % 2
                        T.barrier_wait(loaded[stage], step // STAGES % 2)
                        if with_output:
                            T.gemm(
                                q_tile[stage, :, :],
                                k_tile[stage, :, :],
                                scores,
                                transpose_B=True,
                                clear_accum=True,
                            )
                        T.barrier_arrive(released[stage])
                        T.barrier_wait(factors_stored[half], step // 2 % 2)
                        if with_output:
                            # Masked before exp: above the diagonal the exponent is positive, and
                            # large where gates are strong.
                            for i, j in T.Parallel(CHUNK, CHUNK):
                                scores[i, j] *= SCALE * T.exp(
                                    T.if_then_else(
                                        i >= j,
                                        factors[half, G, i] - factors[half, G, j],
                                        -T.infinity("float32"),
                                    )
                                )
                        T.barrier_arrive(factors_read[half])
                        if with_output:
                            T.barrier_wait(
                                scores_read[(chunk - begin) % 2], ((chunk - begin) // 2 + 1) % 2
                            )
                            T.copy(scores, scores_tile[(chunk - begin) % 2, :, :])
                            T.fence_proxy_async()
                            T.barrier_arrive(scores_stored[(chunk - begin) % 2])

            else:
                T.set_max_nreg(32, 0)
                if thread < STATE_THREADS + GROUP + 32:
                    for chunk in T.serial(start, end):
                        step = chunk - start
                        stage = step % STAGES
                        token = chunk * CHUNK
                        T.barrier_wait(released[stage], (step // STAGES + 1) % 2)
                        T.tma_copy(
                            k[b, token : token + CHUNK, qk_head, 0:HEAD_DIM],
                            k_tile[stage, :, :],
                            barrier=loaded[stage],
                        )
                        if chunk >= begin:
                            T.tma_copy(
                                q[b, token : token + CHUNK, qk_head, 0:HEAD_DIM],
                                q_tile[stage, :, :],
                                barrier=loaded[stage],
                            )
                        for d in (0, CHUNK):
                            T.tma_copy(
                                v[b, token : token + CHUNK, v_head, d : d + CHUNK],
                                v_tile[stage * CHUNK : (stage + 1) * CHUNK, d : d + CHUNK],
                                barrier=loaded[stage],
                            )
                        T.tma_copy(
                            A[b, token : token + CHUNK, v_head, 0:CHUNK],
                            a_tile[stage, :, :],
                            barrier=loaded[stage],
                        )
                        T.barrier_arrive(loaded[stage])
                elif thread < STATE_THREADS + GROUP + 64:
                    for chunk in T.serial(begin, end):
                        T.barrier_wait(out_stored, (chunk - begin) % 2)
                        T.copy(
                            out_tile,
                            output[b, chunk * CHUNK : (chunk + 1) * CHUNK, v_head, 0:HEAD_DIM],
                        )
                        T.barrier_arrive(out_written)
                else:
                    # A token a thread; the next chunk's gates are loaded before they are needed.
                    token = thread - (THREADS - CHUNK)
                    next_g = T.alloc_var("float32", init=0.0)
                    next_beta = T.alloc_var("float32", init=0.0)
                    at = T.alloc_var("int32", init=start * CHUNK + token)
                    next_g = g_cumsum[b, T.min(at, tokens - 1), v_head]
                    next_beta = T.if_then_else(at < tokens, beta[b, at, v_head], 0.0)
                    for chunk in T.serial(start, end):
                        step = chunk - start
                        half = step % 2
                        T.barrier_wait(factors_read[half], (step // 2 + 1) % 2)
                        factors[half, G, token] = next_g
                        factors[half, WRITE, token] = next_beta
                        factors[half, FORGET, token] = next_beta * T.exp(next_g)
                        factors[half, FROM_START, token] = SCALE * T.exp(next_g)
                        T.sync_threads(1, CHUNK)
                        factors[half, TO_LAST, token] = T.exp(factors[half, G, CHUNK - 1] - next_g)
                        T.barrier_arrive(factors_stored[half])
                        at = at + CHUNK
                        next_g = g_cumsum[b, T.min(at, tokens - 1), v_head]
                        next_beta = T.if_then_else(at < tokens, beta[b, at, v_head], 0.0)

    return kernel


@cache
def multiprocessors(device: torch.device) -> int:
    """The number of SMs of that GPU."""
    return torch.cuda.get_device_properties(device).multi_processor_count


@cache
def segmentation(chunks: int, chains: int, sms: int) -> tuple[int, int, int]:
    """How a sequence is cut: segments, chunks by which the first is longer, chunks of the others.

    The cut with the fewest steps in a row: waves of CTAs times the steps of one, a warm-up counted
    as WARM_UP steps. The first segment has no warm-up and is longer by as much.
    """
    best = (1, 0, chunks)
    fewest = -(-chains // sms) * chunks
    for wanted in range(2, chunks - WARM_UP + 1):
        size = -(-(chunks - WARM_UP) // wanted)
        segments = -(-(chunks - WARM_UP) // size)
        steps = -(-chains * segments // sms) * (size + WARM_UP)
        if steps < fewest:
            best, fewest = (segments, WARM_UP, size), steps
    return best


@cache
def buffers(shape: tuple[int, ...], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Output and final state for values of that shape, [B, T, Hv, 128]; the same every time."""
    batch, _, v_heads, _ = shape
    output = torch.empty(shape, dtype=torch.bfloat16, device=device)
    final_state = torch.empty(
        (batch, v_heads, HEAD_DIM, HEAD_DIM), dtype=torch.float32, device=device
    )
    return output, final_state


def graph_key(tensors: Sequence[torch.Tensor], has_initial_state: bool) -> tuple[object, ...]:
    """What a captured launch depends on: every address, the sizes, and which kernel it is.

    tensors: the kernel's nine tensors; the shapes of q and v, first and third, give the rest.
    """
    addresses = map(torch.Tensor.data_ptr, tensors)
    return (has_initial_state, tensors[0].shape, tensors[2].shape, *addresses)


def capture(launch: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """The launch as a graph, captured on the current stream unless that is the default one."""
    graph = torch.cuda.CUDAGraph()
    stream = torch.cuda.current_stream()
    own = None if stream == torch.cuda.default_stream() else stream
    with torch.cuda.graph(graph, stream=own):
        launch()
    return graph


_called: set[tuple[object, ...]] = set()
_graphs: dict[tuple[object, ...], torch.cuda.CUDAGraph] = {}


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
    Returns output [B, T, Hv, 128] bfloat16 and final_state [B, Hv, 128, 128] float32, in buffers
    that the next call with values of this shape overwrites.
    """
    output, final_state = buffers(v.shape, v.device)
    has_initial_state = initial_state is not None
    # Without an initial state the kernel never reads that argument; any state-shaped tensor fits.
    first_state = initial_state if has_initial_state else final_state
    tensors = (q, k, v, g_cumsum, beta, A, first_state, output, final_state)
    key = graph_key(tensors, has_initial_state)
    graph = _graphs.get(key)
    if graph is None:
        batch, tokens, v_heads, _ = v.shape
        kernel = compile_kernel(has_initial_state)
        cut = segmentation(-(-tokens // CHUNK), batch * v_heads, multiprocessors(v.device))
        if key not in _called:
            _called.add(key)
            kernel(*tensors, *cut)
            return output, final_state
        graph = _graphs[key] = capture(lambda: kernel(*tensors, *cut))
    graph.replay()
    return output, final_state
