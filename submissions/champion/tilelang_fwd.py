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

Rows are value columns, and rows never meet: state groups of 128 threads hold 64 rows each and do
not wait for each other. A CTA has two, and while one rounds and scales, the other keeps the tensor
cores busy. A third group computes P, up to two chunks ahead. Of the last group one warp loads, one
stores the output, and two turn gates into factors. V is read and O is written by the transposing
ldmatrix and stmatrix.

More chains. With few heads most SMs have nothing to do, so a sequence is cut into segments, a CTA
each. A segment needs the state before its first chunk. A chunk is a contraction times its gate, so
what came before the last chunks is forgotten by exp(the sum of their gates), see docs/champion.md:
each CTA reads the gates backwards until that is below exp(FORGOTTEN), starts there from zero, and
runs those chunks without output first. Gates that do not forget lead it back to the first chunk and
the initial state, which is exact. No CTA waits for another one. Where a sequence is too short to be
cut, or its segments are hardly longer than their warm-ups, a CTA has one state group and 64
columns: there are twice as many chains, and a chunk takes two thirds of the time.

    barriers             what is handed over
    loaded [stage]       K, Q, V, A and factors of a chunk, and a free output tile; three stages
    released [stage]     that K, Q, V, A, factors and P have been read
    scores_stored [2]    P
    out_stored [2]       the output of the chunk before

A state group waits for two of them a chunk, loaded and scores_stored.

Products are issued early and waited for late, and other work stands in their shadow: the second
half of S is rounded while the first is multiplied by K, the output of the chunk before goes to its
tile during U', S^T @ Q^T runs while V_new is waited for and scaled. S itself is not scaled in most
chunks: registers hold S / 2^unit, one unit for a head, and the factors make up for it until
2^UNIT_FLOOR. That takes 208 registers a thread in the state groups (S 64, its rounding 32,
accumulators and operands of 16 to 32 each); with 200 ptxas makes every product wait for the one
before. P's group has 64, the last 32.

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
# what S is scaled by. The three exponentials are those of an S that is kept divided by 2^unit.
G, WRITE, FORGET, TO_LAST, FROM_START, KEEP = range(6)
# Where the unit of S would fall below 2^UNIT_FLOOR it is 1 again, and S is scaled. bfloat16 goes to
# 2^127, so that a state may reach 2^67.
UNIT_FLOOR = -60.0
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

            # What the other groups hand to the state groups, a tile for odd steps and one for even.
            scores_tile_0 = T.alloc_shared((CHUNK, CHUNK), "bfloat16")
            scores_tile_1 = T.alloc_shared((CHUNK, CHUNK), "bfloat16")
            factors = T.alloc_shared((STAGES, 6, CHUNK), "float32", scope="shared")

            out_tile_0 = T.alloc_shared((CHUNK, columns), "bfloat16")
            out_tile_1 = T.alloc_shared((CHUNK, columns), "bfloat16")
            chunk_gates = T.alloc_shared((LOOK_BACK,), "float32", scope="shared")

            # Transposed: a thread holds the same elements of all of them.
            state = T.alloc_fragment((columns, HEAD_DIM), "float32")
            operand_0 = T.alloc_fragment((columns, HEAD_DIM // 2), "bfloat16")
            operand_1 = T.alloc_fragment((columns, HEAD_DIM // 2), "bfloat16")
            values = T.alloc_fragment((CHUNK, columns), "bfloat16")
            u = T.alloc_fragment((columns, CHUNK), "float32")
            w_operand = T.alloc_fragment((columns, CHUNK), "bfloat16")
            v_new = T.alloc_fragment((columns, CHUNK), "float32")
            v_new_operand = T.alloc_fragment((columns, CHUNK), "bfloat16")
            v_new_decayed = T.alloc_fragment((columns, CHUNK), "bfloat16")
            out = T.alloc_fragment((columns, CHUNK), "float32")
            out_rows = T.alloc_fragment((CHUNK, columns), "bfloat16")
            scores = T.alloc_fragment((CHUNK, CHUNK), "float32")
            row_gate = T.alloc_fragment((CHUNK,), "float32")
            column_gate = T.alloc_fragment((CHUNK,), "float32")
            forget = T.alloc_fragment((CHUNK // 2,), "float32")
            write = T.alloc_fragment((CHUNK // 2,), "float32")
            from_start = T.alloc_fragment((CHUNK,), "float32")
            to_last = T.alloc_fragment((CHUNK,), "float32")
            T.annotate_layout(
                {
                    v_tile_0: make_full_bank_swizzled_layout(v_tile_0),
                    v_tile_1: make_full_bank_swizzled_layout(v_tile_1),
                    v_tile_2: make_full_bank_swizzled_layout(v_tile_2),
                    out_tile_0: make_full_bank_swizzled_layout(out_tile_0),
                    out_tile_1: make_full_bank_swizzled_layout(out_tile_1),
                    values: T.Fragment((CHUNK, columns), forward_fn=transposed_accumulator),
                    out_rows: T.Fragment((CHUNK, columns), forward_fn=transposed_accumulator),
                }
            )

            # The loading warp, the storing warp and the two of the factors.
            loaded = T.alloc_barrier([64 + CHUNK] * STAGES)
            released = T.alloc_barrier([state_threads + GROUP] * STAGES)
            scores_stored = T.alloc_barrier([GROUP] * 2)
            out_stored = T.alloc_barrier([state_threads] * 2)

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
                for low, high, with_output in ((start, begin, False), (begin, end, True)):
                    for chunk in T.serial(low, high):
                        step = chunk - start
                        stage = step % STAGES
                        half = step % 2
                        T.barrier_wait(loaded[stage], step // STAGES % 2)
                        for i, j in T.Parallel(columns, HEAD_DIM // 2):
                            operand_0[i, j] = state[i, j]
                        gemm(
                            operand_0,
                            k_tile[stage, :, 0 : HEAD_DIM // 2],
                            u,
                            transpose_B=True,
                            clear_accum=True,
                        )
                        for i, j in T.Parallel(columns, HEAD_DIM // 2):
                            operand_1[i, j] = state[i, HEAD_DIM // 2 + j]
                        gemm(
                            operand_1,
                            k_tile[stage, :, HEAD_DIM // 2 : HEAD_DIM],
                            u,
                            transpose_B=True,
                        )
                        if with_output:
                            # The output of the chunk before. With the first chunk there is none
                            # yet: what is handed over then is not written.
                            for i, j in T.Parallel(columns, CHUNK):
                                out_rows[j, i] = out[i, j]
                            if half == 0:
                                T.copy(out_rows, out_tile_1)
                            else:
                                T.copy(out_rows, out_tile_0)
                            T.fence_proxy_async()
                            T.barrier_arrive(out_stored[1 - half])
                        if stage == 0:
                            T.copy(v_tile_0, values)
                        elif stage == 1:
                            T.copy(v_tile_1, values)
                        else:
                            T.copy(v_tile_2, values)
                        # The first half's factors are read ahead of the wait, the others while it
                        # is computed.
                        T.copy(factors[stage, FORGET, 0 : CHUNK // 2], forget)
                        T.copy(factors[stage, WRITE, 0 : CHUNK // 2], write)
                        T.wait_wgmma(0)
                        T.warpgroup_fence_operand(u, num_regs=32)
                        for i, j in T.Parallel(columns, CHUNK // 2):
                            w_operand[i, j] = write[j] * values[j, i] - forget[j] * u[i, j]
                        for i, j in T.Parallel(columns, CHUNK // 2):
                            w_operand[i, CHUNK // 2 + j] = (
                                factors[stage, WRITE, CHUNK // 2 + j] * values[CHUNK // 2 + j, i]
                                - factors[stage, FORGET, CHUNK // 2 + j] * u[i, CHUNK // 2 + j]
                            )
                        gemm(
                            w_operand,
                            a_tile[stage, :, :],
                            v_new,
                            transpose_B=True,
                            clear_accum=True,
                        )
                        if with_output:
                            gemm(
                                operand_0,
                                q_tile[stage, :, 0 : HEAD_DIM // 2],
                                out,
                                transpose_B=True,
                                clear_accum=True,
                            )
                            gemm(
                                operand_1,
                                q_tile[stage, :, HEAD_DIM // 2 : HEAD_DIM],
                                out,
                                transpose_B=True,
                            )
                        keep = factors[stage, KEEP, 0]
                        if keep != 1.0:
                            for i, j in T.Parallel(columns, HEAD_DIM):
                                state[i, j] *= keep
                        T.copy(factors[stage, TO_LAST, :], to_last)
                        T.wait_wgmma(2 if with_output else 0)
                        T.warpgroup_fence_operand(v_new, num_regs=32)
                        for i, j in T.Parallel(columns, CHUNK):
                            v_new_decayed[i, j] = v_new[i, j] * to_last[j]
                        if with_output:
                            T.copy(factors[stage, FROM_START, :], from_start)
                        gemm(v_new_decayed, k_tile[stage, :, :], state)
                        if with_output:
                            T.copy(v_new, v_new_operand)
                            T.wait_wgmma(1)
                            T.warpgroup_fence_operand(out, num_regs=32)
                            for i, j in T.Parallel(columns, CHUNK):
                                out[i, j] *= from_start[j]
                            T.barrier_wait(scores_stored[half], (chunk - begin) // 2 % 2)
                            if half == 0:
                                gemm(v_new_operand, scores_tile_0, out, transpose_B=True)
                            else:
                                gemm(v_new_operand, scores_tile_1, out, transpose_B=True)
                        T.wait_wgmma(0)
                        T.warpgroup_fence_operand(state, num_regs=64)
                        if with_output:
                            T.warpgroup_fence_operand(out, num_regs=32)
                        T.barrier_arrive(released[stage])
                for i, j in T.Parallel(columns, CHUNK):
                    out_rows[j, i] = out[i, j]
                steps = end - start
                T.barrier_wait(loaded[steps % STAGES], steps // STAGES % 2)
                if steps % 2 == 0:
                    T.copy(out_rows, out_tile_1)
                else:
                    T.copy(out_rows, out_tile_0)
                T.fence_proxy_async()
                T.barrier_arrive(out_stored[(steps + 1) % 2])
                if end == chunks:
                    for i, j in T.Parallel(columns, HEAD_DIM):
                        final_state[b, v_head, j, first + i] = state[i, j]

            elif thread < state_threads + GROUP:
                T.set_max_nreg(64, 0)
                # With this one TileLang adds none to the loop.
                T.fence_proxy_async()
                for low, high, with_output in ((start, begin, False), (begin, end, True)):
                    for chunk in T.serial(low, high):
                        step = chunk - start
                        stage = step % STAGES
                        half = step % 2
                        T.barrier_wait(loaded[stage], step // STAGES % 2)
                        if with_output:
                            gemm(
                                q_tile[stage, :, :],
                                k_tile[stage, :, :],
                                scores,
                                transpose_B=True,
                                clear_accum=True,
                            )
                            T.copy(factors[stage, G, :], row_gate)
                            T.copy(factors[stage, G, :], column_gate)
                            T.wait_wgmma(0)
                            T.warpgroup_fence_operand(scores, num_regs=32)
                            # Above the diagonal the difference of gates is positive, and large
                            # where they are strong.
                            for i, j in T.Parallel(CHUNK, CHUNK):
                                scores[i, j] *= T.exp2(
                                    T.if_then_else(
                                        i >= j,
                                        row_gate[i] + LOG2_SCALE - column_gate[j],
                                        -T.infinity("float32"),
                                    )
                                )
                            if step >= 2:
                                T.barrier_wait(
                                    released[(step - 2) % STAGES], (step - 2) // STAGES % 2
                                )
                            if half == 0:
                                T.copy(scores, scores_tile_0)
                            else:
                                T.copy(scores, scores_tile_1)
                            T.fence_proxy_async()
                            T.barrier_arrive(scores_stored[half])
                        T.barrier_arrive(released[stage])

            else:
                T.set_max_nreg(32, 0)
                if thread < state_threads + GROUP + 32:
                    # One step more than chunks, empty: it hands over the last one's output tile.
                    for chunk in T.serial(start, end + 1):
                        step = chunk - start
                        stage = step % STAGES
                        token = chunk * CHUNK
                        T.barrier_wait(released[stage], (step // STAGES + 1) % 2)
                        if chunk < end:
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
                                        v[
                                            b,
                                            token : token + CHUNK,
                                            v_head,
                                            first : first + columns,
                                        ],
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
                    # A step may begin once the output three steps before has left its tile, one of
                    # two: it is written in that step, by the state groups.
                    for stage in T.serial(STAGES):
                        T.barrier_arrive(loaded[stage])
                    for step in T.serial(begin - start):
                        T.barrier_wait(loaded[step % STAGES], step // STAGES % 2)
                        T.barrier_arrive(loaded[step % STAGES])
                    # What is handed over before these is the output of no chunk.
                    for n in T.serial(end - begin):
                        step = begin - start + n
                        token = (begin + n) * CHUNK
                        T.barrier_wait(out_stored[step % 2], (n + 1) // 2 % 2)
                        for s, out_tile in ((0, out_tile_0), (1, out_tile_1)):
                            if step % 2 == s:
                                T.copy(
                                    out_tile,
                                    output[
                                        b, token : token + CHUNK, v_head, first : first + columns
                                    ],
                                )
                        T.barrier_arrive(loaded[step % STAGES])
                else:
                    # A token a thread; the next chunk's gates are loaded before they are needed.
                    token = thread - (threads - CHUNK)
                    next_g = T.alloc_var("float32", init=0.0)
                    next_beta = T.alloc_var("float32", init=0.0)
                    unit = T.alloc_var("float32", init=0.0)
                    at = T.alloc_var("int32", init=T.min(start * CHUNK + token, tokens - 1))
                    next_g = g_cumsum[b, at, v_head]
                    next_beta = beta[b, at, v_head]
                    for chunk in T.serial(start, end + 1):
                        step = chunk - start
                        stage = step % STAGES
                        T.barrier_wait(released[stage], (step // STAGES + 1) % 2)
                        next_g = next_g * LOG2_E
                        factors[stage, G, token] = next_g
                        factors[stage, WRITE, token] = next_beta
                        factors[stage, FORGET, token] = next_beta * T.exp2(next_g + unit)
                        factors[stage, FROM_START, token] = T.exp2(next_g + unit + LOG2_SCALE)
                        T.sync_threads(1, CHUNK)
                        last = factors[stage, G, CHUNK - 1]
                        base = T.if_then_else(
                            unit + last < UNIT_FLOOR or chunk >= end - 1, last, -unit
                        )
                        factors[stage, KEEP, token] = T.exp2(unit + base)
                        factors[stage, TO_LAST, token] = T.exp2(base - next_g)
                        unit = last - base
                        T.barrier_arrive(loaded[stage])
                        at = T.min(at + CHUNK, tokens - 1)
                        next_g = g_cumsum[b, at, v_head]
                        next_beta = beta[b, at, v_head]

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
    that the next call with values of this shape overwrites, and must not get as initial_state.
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
