"""champion: a state that stays in registers, and sequences cut into segments that run side by side.

First times on an H200 stand in docs/champion.md, the ideas that are still to be tried too.

Two ideas, one for each half of the time that v14 takes.

A cheaper step. From v6 on, S, W' and V_new go from warp group to warp group through shared memory,
and the chain waits at every hand-over. Here every product is transposed, so that the accumulator of
one is the left operand of the next, rounded to bfloat16 where it lies:

    U'^T    = S^T @ K^T                                    value columns x 64 tokens
    W'^T    = beta * V^T - beta * exp(g) * U'^T            a factor a token: a factor a column
    V_new^T = W'^T @ A^T
    S^T     = exp(g_last) * S^T + (exp(g_last - g) * V_new^T) @ K
    O^T     = scale * exp(g) * (S^T @ Q^T) + V_new^T @ P^T
              where P = scale * lower(Q K^T * exp(g_i - g_j))

Rows are value columns, and rows never meet: state groups of 128 threads hold 64 rows each and wait
for nobody but the loads. A CTA has two, and while one rounds and scales, the other keeps the tensor
cores busy. A third group computes P a chunk ahead. Of the last group one warp loads, one stores the
output, and two turn gates into factors. V is read and O is written by the transposing ldmatrix and
stmatrix.

More chains. With few heads most SMs have nothing to do, so a sequence is cut into segments, a CTA
each. A segment needs the state before its first chunk. A chunk is a contraction times its gate, so
what came before the last chunks is forgotten by exp(the sum of their gates), see docs/champion.md:
each CTA reads the gates backwards until that is below exp(FORGOTTEN), starts there from zero, and
runs those chunks without output first. Gates that do not forget lead it back to the first chunk and
the initial state, which is exact. No CTA waits for another one. Where a sequence is too short to be
cut, or its segments are hardly longer than their warm-ups, a CTA has one state group and 64
columns: there are twice as many chains, and a chunk takes two thirds of the time.

    barrier pair                        what is handed over
    loaded, released [stage]            K, Q, V and A of a chunk; three stages
    factors_stored, factors_read [2]    what the gates come to, a row each; gates in base 2
    scores_stored, scores_read          P
    out_stored, out_written             the output tile

Products are issued early and waited for late, and other work stands in their shadow: S^T @ Q^T
runs while W' is computed, S is scaled during V_new's product and rounded during P's, and a chunk's
output goes to its tile while the next chunk's first two products run. That takes 208 registers a
thread in the state groups (S 64, its rounding 32, accumulators and operands of 16 to 32 each);
with 200 ptxas makes every product wait for the one before. P's group has 64, the last 32.

Needs TileLang 0.1.15; 0.1.9 does not take its loops. In 0.1.15 T.copy by ldmatrix always reads the
first of several stages, so V has a tile of its own for each stage.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial

import tilelang
import tilelang.language as T
import torch
from tilelang.layout import make_full_bank_swizzled_layout

CHUNK = 64
HEAD_DIM = 128
STAGES = 3
LOG2_E = 1.4426950408889634
LOG2_SCALE = -3.5  # scale = 128^(-1/2)
GROUP = 128
LOOK_BACK = 128
# Rows of a chunk's factors: g in base 2, beta, beta * exp(g), exp(g_last - g), scale * exp(g), and
# the logarithm of the last.
G, WRITE, FORGET, TO_LAST, FROM_START, G_SCALED = range(6)
FORGOTTEN = -14.0
# What a warm-up is taken to cost, in chunks with output: five chunks of random_decay, without
# the three products that only the output needs.
WARM_UP = 3
# What starting and ending a CTA is taken to cost, in chunks.
START_UP = 2
# A cut with fewer segments is taken if it costs at most so many times the least: more segments lose
# more where gates do not forget.
NEARLY = 1.03
# What a chunk costs a CTA with 64 columns, in chunks of one with 128, as measured. 64 are taken
# where they cost at most CHEAPER of what 128 do: what is closer lies within the error of the costs.
HALF = 0.66
CHEAPER = 0.97

gemm = partial(T.wgmma_gemm, policy=T.GemmWarpPolicy.FullRow)


def transposed_accumulator(row: int, column: int) -> tuple[int, int]:
    """The thread and its register that hold [column, row] of an accumulator of 64 tokens."""
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
def compile_kernel(has_initial_state: bool, columns: int) -> Callable[..., None]:
    """The compiled kernel. Sizes, head counts and the cut into segments are dynamic.

    columns: value columns of a CTA, 64 or 128. A state group has 64.
    """
    slices = HEAD_DIM // columns
    state_threads = columns // 64 * GROUP
    threads = state_threads + 2 * GROUP
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
        with T.Kernel(segments, v_heads * slices, batch, threads=threads) as (segment, part, b):
            thread = T.get_thread_binding()
            v_head = part // slices
            first = part % slices * columns
            qk_head = T.alloc_var("int32", init=v_head // (v_heads // qk_heads))
            chunks = T.ceildiv(tokens, CHUNK)
            begin = T.alloc_var(
                "int32", init=T.if_then_else(segment == 0, 0, lead + segment * segment_chunks)
            )
            end = T.alloc_var("int32", init=T.min(chunks, lead + (segment + 1) * segment_chunks))
            start = T.alloc_var("int32", init=begin)

            # Inputs, loaded up to two chunks ahead.
            q_tile = T.alloc_shared((STAGES, CHUNK, HEAD_DIM), "bfloat16")
            k_tile = T.alloc_shared((STAGES, CHUNK, HEAD_DIM), "bfloat16")
            v_tile_0 = T.alloc_shared((CHUNK, columns), "bfloat16")
            v_tile_1 = T.alloc_shared((CHUNK, columns), "bfloat16")
            v_tile_2 = T.alloc_shared((CHUNK, columns), "bfloat16")
            a_tile = T.alloc_shared((STAGES, CHUNK, CHUNK), "bfloat16")

            # What the other groups hand to the state groups.
            scores_tile = T.alloc_shared((CHUNK, CHUNK), "bfloat16")
            factors = T.alloc_shared((2, 6, CHUNK), "float32", scope="shared")

            out_tile = T.alloc_shared((CHUNK, columns), "bfloat16")
            chunk_gates = T.alloc_shared((LOOK_BACK,), "float32", scope="shared")

            # Transposed: a thread holds the same elements of all of them.
            state = T.alloc_fragment((columns, HEAD_DIM), "float32")
            state_operand = T.alloc_fragment((columns, HEAD_DIM), "bfloat16")
            values = T.alloc_fragment((CHUNK, columns), "bfloat16")
            u = T.alloc_fragment((columns, CHUNK), "float32")
            w_operand = T.alloc_fragment((columns, CHUNK), "bfloat16")
            v_new = T.alloc_fragment((columns, CHUNK), "float32")
            v_new_operand = T.alloc_fragment((columns, CHUNK), "bfloat16")
            v_new_decayed = T.alloc_fragment((columns, CHUNK), "bfloat16")
            out = T.alloc_fragment((columns, CHUNK), "float32")
            out_rows = T.alloc_fragment((CHUNK, columns), "bfloat16")
            scores = T.alloc_fragment((CHUNK, CHUNK), "float32")
            forget = T.alloc_fragment((CHUNK,), "float32")
            to_last = T.alloc_fragment((CHUNK,), "float32")
            T.annotate_layout(
                {
                    v_tile_0: make_full_bank_swizzled_layout(v_tile_0),
                    v_tile_1: make_full_bank_swizzled_layout(v_tile_1),
                    v_tile_2: make_full_bank_swizzled_layout(v_tile_2),
                    out_tile: make_full_bank_swizzled_layout(out_tile),
                    values: T.Fragment((CHUNK, columns), forward_fn=transposed_accumulator),
                    out_rows: T.Fragment((CHUNK, columns), forward_fn=transposed_accumulator),
                }
            )

            loaded = T.alloc_barrier([32] * STAGES)
            released = T.alloc_barrier([state_threads + GROUP] * STAGES)
            factors_stored = T.alloc_barrier([CHUNK] * 2)
            factors_read = T.alloc_barrier([state_threads + GROUP] * 2)
            scores_stored = T.alloc_barrier(GROUP)
            scores_read = T.alloc_barrier(state_threads)
            out_stored = T.alloc_barrier(state_threads)
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

            if thread < state_threads:
                T.set_max_nreg(208, 1)
                if has_initial_state:
                    if start == 0:
                        for i, j in T.Parallel(columns, HEAD_DIM):
                            state[i, j] = initial_state[b, v_head, j, first + i]
                    else:
                        T.clear(state)
                else:
                    T.clear(state)
                T.copy(state, state_operand)
                for low, high, with_output in ((start, begin, False), (begin, end, True)):
                    for chunk in T.serial(low, high):
                        step = chunk - start
                        stage = step % STAGES
                        half = step % 2
                        T.barrier_wait(loaded[stage], step // STAGES % 2)
                        gemm(
                            state_operand,
                            k_tile[stage, :, :],
                            u,
                            transpose_B=True,
                            clear_accum=True,
                        )
                        if with_output:
                            # The output of the chunk before. With the first chunk there is none
                            # yet: what is handed over then is not written.
                            for i, j in T.Parallel(columns, CHUNK):
                                out_rows[j, i] = out[i, j]
                            gemm(
                                state_operand,
                                q_tile[stage, :, :],
                                out,
                                transpose_B=True,
                                clear_accum=True,
                            )
                        if stage == 0:
                            T.copy(v_tile_0, values)
                        elif stage == 1:
                            T.copy(v_tile_1, values)
                        else:
                            T.copy(v_tile_2, values)
                        if with_output:
                            # It goes to its tile in the shadow of U' and S^T Q^T, and is told of
                            # in that of V_new.
                            T.barrier_wait(out_written, (chunk - begin + 1) % 2)
                            T.copy(out_rows, out_tile)
                        T.barrier_wait(factors_stored[half], step // 2 % 2)
                        # Read ahead of the wait: U' is used as soon as it is there.
                        T.copy(factors[half, FORGET, :], forget)
                        T.wait_wgmma(1 if with_output else 0)
                        T.warpgroup_fence_operand(u, num_regs=32)
                        for i, j in T.Parallel(columns, CHUNK):
                            w_operand[i, j] = (
                                factors[half, WRITE, j] * values[j, i] - forget[j] * u[i, j]
                            )
                        gemm(
                            w_operand,
                            a_tile[stage, :, :],
                            v_new,
                            transpose_B=True,
                            clear_accum=True,
                        )
                        keep = T.exp2(factors[half, G, CHUNK - 1])
                        for i, j in T.Parallel(columns, HEAD_DIM):
                            state[i, j] *= keep
                        if with_output:
                            T.fence_proxy_async()
                            T.barrier_arrive(out_stored)
                        T.copy(factors[half, TO_LAST, :], to_last)
                        T.wait_wgmma(0)
                        T.warpgroup_fence_operand(v_new, num_regs=32)
                        for i, j in T.Parallel(columns, CHUNK):
                            v_new_decayed[i, j] = v_new[i, j] * to_last[j]
                        gemm(v_new_decayed, k_tile[stage, :, :], state)
                        if with_output:
                            T.warpgroup_fence_operand(out, num_regs=32)
                            T.copy(v_new, v_new_operand)
                            T.barrier_wait(scores_stored, (chunk - begin) % 2)
                            for i, j in T.Parallel(columns, CHUNK):
                                out[i, j] *= factors[half, FROM_START, j]
                            T.barrier_arrive(factors_read[half])
                            gemm(
                                v_new_operand,
                                scores_tile,
                                out,
                                transpose_B=True,
                            )
                            T.wait_wgmma(1)
                            T.warpgroup_fence_operand(state, num_regs=64)
                            T.barrier_arrive(released[stage])
                            T.copy(state, state_operand)
                            T.wait_wgmma(0)
                            T.warpgroup_fence_operand(out, num_regs=32)
                            T.barrier_arrive(scores_read)
                        else:
                            T.barrier_arrive(factors_read[half])
                            T.wait_wgmma(0)
                            T.warpgroup_fence_operand(state, num_regs=64)
                            T.barrier_arrive(released[stage])
                            T.copy(state, state_operand)
                for i, j in T.Parallel(columns, CHUNK):
                    out_rows[j, i] = out[i, j]
                T.barrier_wait(out_written, (end - begin + 1) % 2)
                T.copy(out_rows, out_tile)
                T.fence_proxy_async()
                T.barrier_arrive(out_stored)
                if end == chunks:
                    for i, j in T.Parallel(columns, HEAD_DIM):
                        final_state[b, v_head, j, first + i] = state[i, j]

            elif thread < state_threads + GROUP:
                T.set_max_nreg(64, 0)
                for low, high, with_output in ((start, begin, False), (begin, end, True)):
                    for chunk in T.serial(low, high):
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
                        if with_output:
                            for i, j in T.Parallel(CHUNK, CHUNK):
                                scores[i, j] = T.if_then_else(i >= j, scores[i, j], 0.0)
                            T.warpgroup_fence_operand(scores, num_regs=32)
                        T.barrier_wait(factors_stored[half], step // 2 % 2)
                        if with_output:
                            # Above the diagonal, where the scores are zero by now, the difference
                            # of gates is positive, and large where they are strong.
                            for i, j in T.Parallel(CHUNK, CHUNK):
                                scores[i, j] *= T.exp2(
                                    T.min(
                                        factors[half, G_SCALED, i] - factors[half, G, j], LOG2_SCALE
                                    )
                                )
                        T.barrier_arrive(factors_read[half])
                        if with_output:
                            T.barrier_wait(scores_read, (chunk - begin + 1) % 2)
                            T.copy(scores, scores_tile)
                            T.fence_proxy_async()
                            T.barrier_arrive(scores_stored)

            else:
                T.set_max_nreg(32, 0)
                if thread < state_threads + GROUP + 32:
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
                        for s, v_tile in ((0, v_tile_0), (1, v_tile_1), (2, v_tile_2)):
                            if stage == s:
                                T.tma_copy(
                                    v[b, token : token + CHUNK, v_head, first : first + columns],
                                    v_tile,
                                    barrier=loaded[s],
                                )
                        T.tma_copy(
                            A[b, token : token + CHUNK, v_head, 0:CHUNK],
                            a_tile[stage, :, :],
                            barrier=loaded[stage],
                        )
                        T.barrier_arrive(loaded[stage])
                elif thread < state_threads + GROUP + 64:
                    # The tile that is handed over with a chunk holds the one before, if any.
                    for n in T.serial(end - begin + 1):
                        T.barrier_wait(out_stored, n % 2)
                        if n > 0:
                            token = (begin + n - 1) * CHUNK
                            T.copy(
                                out_tile,
                                output[b, token : token + CHUNK, v_head, first : first + columns],
                            )
                        T.barrier_arrive(out_written)
                else:
                    # A token a thread; the next chunk's gates are loaded before they are needed.
                    token = thread - (threads - CHUNK)
                    next_g = T.alloc_var("float32", init=0.0)
                    next_beta = T.alloc_var("float32", init=0.0)
                    at = T.alloc_var("int32", init=start * CHUNK + token)
                    next_g = g_cumsum[b, T.min(at, tokens - 1), v_head]
                    next_beta = T.if_then_else(at < tokens, beta[b, at, v_head], 0.0)
                    for chunk in T.serial(start, end):
                        step = chunk - start
                        half = step % 2
                        T.barrier_wait(factors_read[half], (step // 2 + 1) % 2)
                        next_g = next_g * LOG2_E
                        factors[half, G, token] = next_g
                        factors[half, G_SCALED, token] = next_g + LOG2_SCALE
                        factors[half, WRITE, token] = next_beta
                        factors[half, FORGET, token] = next_beta * T.exp2(next_g)
                        factors[half, FROM_START, token] = T.exp2(next_g + LOG2_SCALE)
                        T.sync_threads(1, CHUNK)
                        factors[half, TO_LAST, token] = T.exp2(factors[half, G, CHUNK - 1] - next_g)
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
def division(chunks: int, chains: int, sms: int) -> tuple[int, tuple[int, int, int]]:
    """How the work is divided: value columns of a CTA, and the cut of a sequence into segments.

    With 64 columns there are twice as many chains, and a chunk costs HALF as much as with 128.
    """
    cost, cut = segmentation(chunks, chains, sms)
    half_cost, half_cut = segmentation(chunks, 2 * chains, sms)
    if HALF * half_cost <= CHEAPER * cost:
        return 64, half_cut
    return 128, cut


def segmentation(chunks: int, chains: int, sms: int) -> tuple[int, tuple[int, int, int]]:
    """What the best cut costs, and its segments, first one's excess and the others' chunks.

    The cost of a cut is waves of CTAs times the chunks of one, START_UP and a warm-up of WARM_UP
    among them. The first segment has no warm-up and is longer by as much.
    """
    cuts = [(-(-chains // sms) * (chunks + START_UP), (1, 0, chunks))]
    for wanted in range(2, chunks - WARM_UP + 1):
        size = -(-(chunks - WARM_UP) // wanted)
        segments = -(-(chunks - WARM_UP) // size)
        steps = size + WARM_UP + START_UP
        cuts.append((-(-chains * segments // sms) * steps, (segments, WARM_UP, size)))
    least, _ = min(cuts)
    return next((cost, cut) for cost, cut in cuts if cost <= NEARLY * least)


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

    tensors: the kernel's nine tensors; the shapes of q and v, first and third, give the rest. With
    the GPU, which the addresses tell, they decide on columns and cut too.
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
        sms = multiprocessors(v.device)
        columns, cut = division(-(-tokens // CHUNK), batch * v_heads, sms)
        kernel = compile_kernel(has_initial_state, columns)
        if key not in _called:
            _called.add(key)
            kernel(*tensors, *cut)
            return output, final_state
        graph = _graphs[key] = capture(lambda: kernel(*tensors, *cut))
    graph.replay()
    return output, final_state
