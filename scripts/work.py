"""What a case must move and multiply, and how long a device takes for that at least."""

from __future__ import annotations

from dataclasses import dataclass

from judge.case import CHUNK, HEAD_DIM, Case
from judge.floor import Ceilings

BFLOAT16, FLOAT32 = 2, 4
H200 = Ceilings(bytes_per_s=4.2e12, flops_per_s=790e12, cache_bytes=0)
"""What copies and matrix products reached on an H200; for a page without measured ceilings."""


@dataclass(frozen=True)
class Work:
    """Bytes and floating-point operations of one call."""

    bytes: int
    flops: int

    @property
    def intensity(self) -> float:
        """Operations a byte."""
        return self.flops / self.bytes

    def floor_ms(self, ceilings: Ceilings) -> float:
        """The longer of moving and multiplying."""
        moving, multiplying = self.bytes / ceilings.bytes_per_s, self.flops / ceilings.flops_per_s
        return 1e3 * max(moving, multiplying)

    def roof_flops_per_s(self, ceilings: Ceilings) -> float:
        """What a kernel of this intensity can reach."""
        return min(ceilings.flops_per_s, self.intensity * ceilings.bytes_per_s)


def work_of(case: Case) -> Work:
    """Every input read once, every result written once, and all six products of every chunk.

    Unlike judge/floor.py, which says what no honest kernel can beat, this counts whole products and
    a whole A, as kernels compute and load them, and no help from the cache.
    """
    tokens, chunks = case.batch * case.tokens, case.batch * -(-case.tokens // CHUNK)
    states = case.batch * case.v_heads * HEAD_DIM * HEAD_DIM * FLOAT32
    moved = tokens * case.qk_heads * 2 * HEAD_DIM * BFLOAT16
    moved += tokens * case.v_heads * ((2 * HEAD_DIM + CHUNK) * BFLOAT16 + 2 * FLOAT32)
    moved += states * (1 if case.initial_state is None else 2)
    square = 2 * CHUNK * HEAD_DIM * HEAD_DIM  # K S, Q S and K^T V_new
    narrow = 2 * CHUNK * CHUNK * HEAD_DIM  # A W', Q K^T and P V_new
    return Work(moved, chunks * case.v_heads * 3 * (square + narrow))
