"""What is changed in the champion, as pieces of its source and what stands in their place.

A variant either switches one idea off, or tries one that the champion does not have yet.
"""

from __future__ import annotations

from dataclasses import dataclass

Edits = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Variant:
    """One change. off: whether it takes an idea away, which then shows what that one is worth.

    edits: pieces of the source and what replaces each wherever it stands. upon: the variant whose
    source is changed, empty for the champion's.
    """

    name: str
    text: str
    off: bool
    edits: Edits
    upon: str = ""


def source_of(variant: Variant, champion: str) -> str:
    """The variant's source. Raises ValueError where a piece is not to be found any more."""
    source = champion
    if variant.upon:
        (below,) = [one for one in VARIANTS if one.name == variant.upon]
        source = source_of(below, champion)
    for old, new in variant.edits:
        if old not in source:
            raise ValueError(f"{variant.name}: the champion no longer holds {old.strip()[:60]!r}")
        source = source.replace(old, new)
    return source


_OUTPUT_LATER: Edits = (
    (
        """\
            scores = T.alloc_fragment((CHUNK, CHUNK), "float32")
""",
        """\
            scores = T.alloc_fragment((CHUNK, CHUNK), "float32")
            forget = T.alloc_fragment((CHUNK,), "float32")
            to_last = T.alloc_fragment((CHUNK,), "float32")
""",
    ),
    (
        """\
                        if with_output:
                            # The output of the chunk before, in the shadow of U'.
                            if chunk > begin:
                                for i, j in T.Parallel(VALUES, CHUNK):
                                    out_rows[j, i] = out[i, j]
                                T.barrier_wait(out_written, (chunk - begin) % 2)
                                T.copy(out_rows, out_tile)
                                T.fence_proxy_async()
                                T.barrier_arrive(out_stored)
                            gemm(
""",
        """\
                        if with_output:
                            for i, j in T.Parallel(VALUES, CHUNK):
                                out_rows[j, i] = out[i, j]
                            gemm(
""",
    ),
    (
        """\
                        T.barrier_wait(factors_stored[half], step // 2 % 2)
                        T.wait_wgmma(1 if with_output else 0)
""",
        """\
                        if with_output:
                            # The output of the chunk before, in the shadow of U' and S^T Q^T.
                            T.barrier_wait(out_written, (chunk - begin + 1) % 2)
                            T.copy(out_rows, out_tile)
                        T.barrier_wait(factors_stored[half], step // 2 % 2)
                        T.copy(factors[half, FORGET, :], forget)
                        T.wait_wgmma(1 if with_output else 0)
""",
    ),
    (
        "- factors[half, FORGET, j] * u[i, j]",
        "- forget[j] * u[i, j]",
    ),
    (
        """\
                            state[i, j] *= keep
                        T.wait_wgmma(0)
""",
        """\
                            state[i, j] *= keep
                        if with_output:
                            T.fence_proxy_async()
                            T.barrier_arrive(out_stored)
                        T.copy(factors[half, TO_LAST, :], to_last)
                        T.wait_wgmma(0)
""",
    ),
    (
        "v_new_decayed[i, j] = v_new[i, j] * factors[half, TO_LAST, j]",
        "v_new_decayed[i, j] = v_new[i, j] * to_last[j]",
    ),
    (
        """\
                            T.copy(v_new, v_new_operand)
                            for i, j in T.Parallel(VALUES, CHUNK):
                                out[i, j] *= factors[half, FROM_START, j]
                            T.barrier_arrive(factors_read[half])
                            T.barrier_wait(scores_stored, (chunk - begin) % 2)
""",
        """\
                            T.copy(v_new, v_new_operand)
                            T.barrier_wait(scores_stored, (chunk - begin) % 2)
                            for i, j in T.Parallel(VALUES, CHUNK):
                                out[i, j] *= factors[half, FROM_START, j]
                            T.barrier_arrive(factors_read[half])
""",
    ),
    (
        """\
                T.barrier_wait(out_written, (end - begin) % 2)
""",
        """\
                T.barrier_wait(out_written, (end - begin + 1) % 2)
""",
    ),
    (
        """\
                    for chunk in T.serial(begin, end):
                        T.barrier_wait(out_stored, (chunk - begin) % 2)
                        T.copy(
                            out_tile,
                            output[
                                b,
                                chunk * CHUNK : (chunk + 1) * CHUNK,
                                v_head,
                                first : first + VALUES,
                            ],
                        )
                        T.barrier_arrive(out_written)
""",
        """\
                    # What the state groups hand over with the first chunk is no output yet.
                    for n in T.serial(end - begin + 1):
                        T.barrier_wait(out_stored, n % 2)
                        if n > 0:
                            token = (begin + n - 1) * CHUNK
                            T.copy(
                                out_tile,
                                output[b, token : token + CHUNK, v_head, first : first + VALUES],
                            )
                        T.barrier_arrive(out_written)
""",
    ),
)

VARIANTS = (
    Variant(
        "one_segment",
        "no sequence is cut",
        True,
        (("for wanted in range(2, chunks - WARM_UP + 1):", "for wanted in ():"),),
    ),
    Variant(
        "equal_segments",
        "the first segment, which has no warm-up, is as long as the others",
        True,
        (
            ("size = -(-(chunks - WARM_UP) // wanted)", "size = -(-chunks // wanted)"),
            ("segments = -(-(chunks - WARM_UP) // size)", "segments = -(-chunks // size)"),
            ("cuts.append(((segments, WARM_UP, size)", "cuts.append(((segments, 0, size)"),
        ),
    ),
    Variant(
        "waits_at_once",
        "a product is waited for before the next one is issued, but for S^T Q^T and S",
        True,
        (
            ("T.wait_wgmma(1 if with_output else 0)", "T.wait_wgmma(0)"),
            (
                """\
                            T.wait_wgmma(1)
                            T.warpgroup_fence_operand(state, num_regs=64)
""",
                """\
                            T.wait_wgmma(0)
                            T.warpgroup_fence_operand(state, num_regs=64)
""",
            ),
        ),
    ),
    Variant(
        "scaled_late",
        "S is scaled when V_new is there, not in the shadow of its product",
        True,
        (
            (
                """\
                        for i, j in T.Parallel(VALUES, HEAD_DIM):
                            state[i, j] *= keep
                        T.wait_wgmma(0)
                        T.warpgroup_fence_operand(v_new, num_regs=32)
""",
                """\
                        T.wait_wgmma(0)
                        T.warpgroup_fence_operand(v_new, num_regs=32)
                        for i, j in T.Parallel(VALUES, HEAD_DIM):
                            state[i, j] *= keep
""",
            ),
        ),
    ),
    Variant(
        "two_stages",
        "inputs are loaded one chunk ahead instead of two",
        True,
        (
            ("STAGES = 3", "STAGES = 2"),
            (
                "for s, v_tile in ((0, v_tile_0), (1, v_tile_1), (2, v_tile_2)):",
                "for s, v_tile in ((0, v_tile_0), (1, v_tile_1)):",
            ),
        ),
    ),
    Variant(
        "200_registers",
        "ptxas makes every product wait for the one before",
        True,
        (("T.set_max_nreg(208, 1)", "T.set_max_nreg(200, 1)"),),
    ),
    Variant(
        "exact_exponentials",
        "without fast mathematics",
        True,
        (("TL_ENABLE_FAST_MATH: True", "TL_ENABLE_FAST_MATH: False"),),
    ),
    Variant(
        "forgets_later",
        "a warm-up reaches back until exp(-30) is left, not exp(-14)",
        True,
        (("FORGOTTEN = -14.0", "FORGOTTEN = -30.0"),),
    ),
    Variant(
        "64_columns",
        "a CTA keeps 64 value columns, so that there are twice as many; one state group",
        False,
        (("VALUES = 128", "VALUES = 64"),),
    ),
    Variant(
        "output_later",
        "the output goes to shared memory behind the issue of S^T Q^T and is told of behind V_new; "
        "factors are read before the products that they wait with",
        False,
        _OUTPUT_LATER,
    ),
    Variant(
        "one_arrival_a_warp",
        "one thread of a warp arrives at a barrier for all",
        False,
        (
            (
                "gemm = partial(",
                """\
GROUP_WARPS = GROUP // 32
STATE_WARPS = STATE_THREADS // 32


@T.macro
def arrive(barriers, index):
    \"\"\"One thread of the warp arrives, once all of them are here.\"\"\"
    T.sync_warp()
    if T.shuffle_elect(32):
        T.barrier_arrive(barriers[index])


gemm = partial(""",
            ),
            ("T.barrier_arrive(released[stage])", "arrive(released, stage)"),
            ("T.barrier_arrive(factors_read[half])", "arrive(factors_read, half)"),
            ("T.barrier_arrive(scores_read)", "arrive(scores_read, 0)"),
            ("T.barrier_arrive(scores_stored)", "arrive(scores_stored, 0)"),
            ("T.barrier_arrive(out_stored)", "arrive(out_stored, 0)"),
            ("[STATE_THREADS + GROUP]", "[STATE_WARPS + GROUP_WARPS]"),
            (
                "scores_stored = T.alloc_barrier(GROUP)",
                "scores_stored = T.alloc_barrier(GROUP_WARPS)",
            ),
            ("T.alloc_barrier(STATE_THREADS)", "T.alloc_barrier(STATE_WARPS)"),
        ),
        upon="output_later",
    ),
    Variant(
        "output_later_64_columns",
        "both",
        False,
        (("VALUES = 128", "VALUES = 64"),),
        upon="output_later",
    ),
)
