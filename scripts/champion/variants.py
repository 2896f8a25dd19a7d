"""What is changed in the champion, as pieces of its source and what stands in their place.

A variant either switches one idea off, or tries one that the champion does not have.
"""

from __future__ import annotations

from dataclasses import dataclass

Edits = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Variant:
    """One change. off: whether it takes an idea away, which then shows what that one is worth.

    edits: pieces of the source and what replaces each wherever it stands.
    """

    name: str
    text: str
    off: bool
    edits: Edits


def source_of(variant: Variant, champion: str) -> str:
    """The variant's source. Raises ValueError where a piece is not to be found any more."""
    source = champion
    for old, new in variant.edits:
        if old not in source:
            raise ValueError(f"{variant.name}: the champion no longer holds {old.strip()[:60]!r}")
        source = source.replace(old, new)
    return source


_OUTPUT_EARLIER: Edits = (
    (
        """\
            forget = T.alloc_fragment((CHUNK,), "float32")
            to_last = T.alloc_fragment((CHUNK,), "float32")
""",
        "",
    ),
    (
        """\
                            for i, j in T.Parallel(columns, CHUNK):
                                out_rows[j, i] = out[i, j]
                            gemm(
""",
        """\
                            if chunk > begin:
                                for i, j in T.Parallel(columns, CHUNK):
                                    out_rows[j, i] = out[i, j]
                                T.barrier_wait(out_written, (chunk - begin) % 2)
                                T.copy(out_rows, out_tile)
                                T.fence_proxy_async()
                                T.barrier_arrive(out_stored)
                            gemm(
""",
    ),
    (
        """\
                        if with_output:
                            # It goes to its tile in the shadow of U' and S^T Q^T, and is told of
                            # in that of V_new.
                            T.barrier_wait(out_written, (chunk - begin + 1) % 2)
                            T.copy(out_rows, out_tile)
""",
        "",
    ),
    (
        """\
                        T.copy(factors[half, FORGET, :], forget)
""",
        "",
    ),
    (
        "- forget[j] * u[i, j]",
        "- factors[half, FORGET, j] * u[i, j]",
    ),
    (
        """\
                        if with_output:
                            T.fence_proxy_async()
                            T.barrier_arrive(out_stored)
                        T.copy(factors[half, TO_LAST, :], to_last)
""",
        "",
    ),
    (
        "v_new_decayed[i, j] = v_new[i, j] * to_last[j]",
        "v_new_decayed[i, j] = v_new[i, j] * factors[half, TO_LAST, j]",
    ),
    (
        """\
                            T.barrier_wait(scores_stored, (chunk - begin) % 2)
                            for i, j in T.Parallel(columns, CHUNK):
                                out[i, j] *= factors[half, FROM_START, j]
                            T.barrier_arrive(factors_read[half])
""",
        """\
                            for i, j in T.Parallel(columns, CHUNK):
                                out[i, j] *= factors[half, FROM_START, j]
                            T.barrier_arrive(factors_read[half])
                            T.barrier_wait(scores_stored, (chunk - begin) % 2)
""",
    ),
    (
        """\
                T.barrier_wait(out_written, (end - begin + 1) % 2)
""",
        """\
                T.barrier_wait(out_written, (end - begin) % 2)
""",
    ),
    (
        """\
                    for n in T.serial(end - begin + 1):
                        T.barrier_wait(out_stored, n % 2)
                        if n > 0:
                            token = (begin + n - 1) * CHUNK
                            T.copy(
                                out_tile,
                                output[b, token : token + CHUNK, v_head, first : first + columns],
                            )
                        T.barrier_arrive(out_written)
""",
        """\
                    for n in T.serial(end - begin):
                        token = (begin + n) * CHUNK
                        T.barrier_wait(out_stored, n % 2)
                        T.copy(
                            out_tile,
                            output[b, token : token + CHUNK, v_head, first : first + columns],
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
            ("* steps, (segments, WARM_UP, size)", "* steps, (segments, 0, size)"),
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
                        for i, j in T.Parallel(columns, HEAD_DIM):
                            state[i, j] *= keep
                        if with_output:
                            T.fence_proxy_async()
                            T.barrier_arrive(out_stored)
                        T.copy(factors[half, TO_LAST, :], to_last)
                        T.wait_wgmma(0)
                        T.warpgroup_fence_operand(v_new, num_regs=32)
""",
                """\
                        if with_output:
                            T.fence_proxy_async()
                            T.barrier_arrive(out_stored)
                        T.copy(factors[half, TO_LAST, :], to_last)
                        T.wait_wgmma(0)
                        T.warpgroup_fence_operand(v_new, num_regs=32)
                        for i, j in T.Parallel(columns, HEAD_DIM):
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
        "output_earlier",
        "the output goes to shared memory before S^T Q^T is issued, and factors are read behind "
        "the waits",
        True,
        _OUTPUT_EARLIER,
    ),
    Variant(
        "128_columns_only",
        "a CTA always keeps 128 value columns",
        True,
        (("CHEAPER = 0.97", "CHEAPER = 0"),),
    ),
    Variant(
        "64_columns_only",
        "a CTA always keeps 64 value columns, and has one state group",
        True,
        (("CHEAPER = 0.97", 'CHEAPER = float("inf")'),),
    ),
    Variant(
        "one_arrival_a_warp",
        "one thread of a warp arrives at a barrier for all",
        False,
        (
            (
                "gemm = partial(",
                """\
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
            ("[state_threads + GROUP]", "[(state_threads + GROUP) // 32]"),
            ("T.alloc_barrier(GROUP)", "T.alloc_barrier(GROUP // 32)"),
            ("T.alloc_barrier(state_threads)", "T.alloc_barrier(state_threads // 32)"),
        ),
    ),
)
