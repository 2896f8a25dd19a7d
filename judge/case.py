"""What is graded: cases and the suites that hold them, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

HEAD_DIM = 128
CHUNK = 64
HIDDEN_SUITE = "hidden"
"""The suite whose cases participants know by number alone."""


@dataclass(frozen=True)
class Case:
    """One problem: shape, gate and overrides of the inputs, and how it is judged.

    batch, tokens, qk_heads, v_heads: B, T, Hq, Hv; v_heads is a multiple of qk_heads.
    initial_state: scale of the standard normal initial state, None where the case has none.
    gate: random_decay, mixed, no_decay, hard_forget or constant; gate_value: raw_g of every token
        where the gate is constant, else None.
    beta: constant write strength in place of the drawn one, None to keep the draw.
    equal_keys: every key of a chunk equals the chunk's first key.
    zero_values: v is all zeros.
    timed: whether the case is timed and scored, or judged for correctness only.
    tolerance: rtol and atol against the float64 reference.
    """

    name: str
    batch: int
    tokens: int
    qk_heads: int
    v_heads: int
    initial_state: float | None
    gate: str
    gate_value: float | None
    beta: float | None
    equal_keys: bool
    zero_values: bool
    timed: bool
    tolerance: float


@dataclass(frozen=True)
class Suite:
    """A named list of cases with its share of the total score.

    weight: share of the total (public 0.6, hidden 0.4), None for a suite that earns no score.
    tilelang: the TileLang version that the suite was meant for, None where it does not say.
    digest: SHA-256 of the file's bytes, hexadecimal.
    """

    name: str
    weight: float | None
    tilelang: str | None
    cases: tuple[Case, ...]
    path: str
    digest: str
