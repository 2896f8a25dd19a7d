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


_WAITS_AT_ONCE: Edits = (
    (
        """\
                        if with_output:
                            gemm(
                                operand_0,
""",
        """\
                        if with_output:
                            T.wait_wgmma(0)
                            T.warpgroup_fence_operand(v_new, num_regs=32)
                            gemm(
                                operand_0,
""",
    ),
    ("T.wait_wgmma(2 if with_output else 0)", "T.wait_wgmma(0)"),
    (
        """\
                            T.wait_wgmma(1)
                            T.warpgroup_fence_operand(out, num_regs=32)
""",
        """\
                            T.wait_wgmma(0)
                            T.warpgroup_fence_operand(state, num_regs=64)
                            T.warpgroup_fence_operand(out, num_regs=32)
""",
    ),
)

_SCALED_ALWAYS: Edits = (
    ("UNIT_FLOOR = -60.0", "UNIT_FLOOR = 0.0"),
    (
        """\
                        if keep != 1.0:
                            for i, j in T.Parallel(columns, HEAD_DIM):
                                state[i, j] *= keep
""",
        """\
                        for i, j in T.Parallel(columns, HEAD_DIM):
                            state[i, j] *= keep
""",
    ),
)

# The third tile of V goes with its stage.
_TWO_STAGES: Edits = (
    ("STAGES = 3", "STAGES = 2"),
    (
        """\
            v_tile_2 = T.alloc_shared((CHUNK, columns), "bfloat16")
""",
        "",
    ),
    (
        """\
                    v_tile_2: make_full_bank_swizzled_layout(v_tile_2),
""",
        "",
    ),
    (
        """\
                        elif stage == 1:
                            T.copy(v_tile_1, values)
                        else:
                            T.copy(v_tile_2, values)
""",
        """\
                        else:
                            T.copy(v_tile_1, values)
""",
    ),
    (
        "for s, v_tile in ((0, v_tile_0), (1, v_tile_1), (2, v_tile_2)):",
        "for s, v_tile in ((0, v_tile_0), (1, v_tile_1)):",
    ),
)

_OUTPUT_QUERY = """\
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
"""

# Products end in the order of their issue, and a half is one of them.
_OUTPUT_QUERY_EARLY: Edits = (
    (
        f"""\
                        if with_output:
{_OUTPUT_QUERY}                        keep =""",
        """\
                        keep =""",
    ),
    (
        """\
                            T.barrier_arrive(out_stored[1 - half])
""",
        f"""\
                            T.barrier_arrive(out_stored[1 - half])
{_OUTPUT_QUERY}""",
    ),
    (
        """\
                        T.wait_wgmma(0)
                        T.warpgroup_fence_operand(u, num_regs=32)
""",
        """\
                        T.wait_wgmma(2 if with_output else 0)
                        T.warpgroup_fence_operand(u, num_regs=32)
""",
    ),
    (
        """\
                        T.wait_wgmma(2 if with_output else 0)
                        T.warpgroup_fence_operand(v_new, num_regs=32)
""",
        """\
                        T.wait_wgmma(0)
                        T.warpgroup_fence_operand(v_new, num_regs=32)
""",
    ),
    (
        """\
                            T.wait_wgmma(1)
                            T.warpgroup_fence_operand(out, num_regs=32)
""",
        """\
                            T.warpgroup_fence_operand(out, num_regs=32)
""",
    ),
)

_ONE_ARRIVAL_A_WARP: Edits = (
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
    ("T.barrier_arrive(scores_stored[half])", "arrive(scores_stored, half)"),
    ("T.barrier_arrive(out_stored[1 - half])", "arrive(out_stored, 1 - half)"),
    ("T.barrier_arrive(out_stored[(steps + 1) % 2])", "arrive(out_stored, (steps + 1) % 2)"),
    ("[state_threads + GROUP] * STAGES", "[(state_threads + GROUP) // 32] * STAGES"),
    ("T.alloc_barrier([GROUP] * 2)", "T.alloc_barrier([GROUP // 32] * 2)"),
    ("T.alloc_barrier([state_threads] * 2)", "T.alloc_barrier([state_threads // 32] * 2)"),
)

# The last chunk waits for the step after it, as its output would; the V that it reads is not used.
_VALUES_AHEAD: Edits = (
    (
        """\
                    T.clear(state)
                for low, high, with_output in""",
        """\
                    T.clear(state)
                T.barrier_wait(loaded[0], 0)
                T.copy(v_tile_0, values)
                T.fence_proxy_async()
                for low, high, with_output in""",
    ),
    (
        """\
                        T.barrier_wait(loaded[stage], step // STAGES % 2)
                        for i, j in T.Parallel(columns, HEAD_DIM // 2):
                            operand_0""",
        """\
                        for i, j in T.Parallel(columns, HEAD_DIM // 2):
                            operand_0""",
    ),
    (
        """\
                        if stage == 0:
                            T.copy(v_tile_0, values)
                        elif stage == 1:
                            T.copy(v_tile_1, values)
                        else:
                            T.copy(v_tile_2, values)
""",
        "",
    ),
    (
        """\
                        T.wait_wgmma(0)
                        T.warpgroup_fence_operand(state, num_regs=64)
""",
        """\
                        following = (step + 1) % STAGES
                        T.barrier_wait(loaded[following], (step + 1) // STAGES % 2)
                        if following == 0:
                            T.copy(v_tile_0, values)
                        elif following == 1:
                            T.copy(v_tile_1, values)
                        else:
                            T.copy(v_tile_2, values)
                        T.fence_proxy_async()
                        T.wait_wgmma(0)
                        T.warpgroup_fence_operand(state, num_regs=64)
""",
    ),
    (
        """\
                T.barrier_wait(loaded[steps % STAGES], steps // STAGES % 2)
""",
        "",
    ),
)

# The first chunk is in one of the two loops only.
_SECOND_GROUP_LATER: Edits = (
    (
        """\
            out_stored = T.alloc_barrier([state_threads] * 2)
""",
        """\
            out_stored = T.alloc_barrier([state_threads] * 2)
            first_began = T.alloc_barrier(GROUP)
""",
    ),
    (
        """\
                    T.clear(state)
                for low, high, with_output in""",
        """\
                    T.clear(state)
                if columns == HEAD_DIM and thread >= GROUP:
                    T.barrier_wait(first_began, 0)
                for low, high, with_output in""",
    ),
    (
        """\
                        T.wait_wgmma(0)
                        T.warpgroup_fence_operand(u, num_regs=32)
""",
        """\
                        if columns == HEAD_DIM and chunk == start and thread < GROUP:
                            T.barrier_arrive(first_began)
                        T.wait_wgmma(0)
                        T.warpgroup_fence_operand(u, num_regs=32)
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
        "a product is waited for before the next one is issued",
        True,
        _WAITS_AT_ONCE,
    ),
    Variant(
        "scaled_always",
        "S is scaled in every chunk, not when its unit falls",
        True,
        _SCALED_ALWAYS,
    ),
    Variant(
        "two_stages",
        "inputs are loaded one chunk ahead instead of two",
        True,
        _TWO_STAGES,
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
        "output_query_early",
        "S^T Q^T is issued before U' is waited for, not after V_new's product",
        True,
        _OUTPUT_QUERY_EARLY,
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
        "one thread of a warp arrives for all at released, scores_stored and out_stored",
        False,
        _ONE_ARRIVAL_A_WARP,
    ),
    Variant(
        "values_ahead",
        "V of the next chunk is read while the products of S and of the output run",
        False,
        _VALUES_AHEAD,
    ),
    Variant(
        "second_group_later",
        "the second state group starts when the first has issued its first U'",
        False,
        _SECOND_GROUP_LATER,
    ),
)
