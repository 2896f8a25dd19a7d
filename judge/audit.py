"""What calls of a case must return, for seeds that are drawn when a run starts."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from judge.case import Case
from judge.checking import Expected
from judge.reference_run import expected_results

SEED_LIMIT = 2**63
AUDIT_FACTOR = 2.0
"""Tolerance of an audit with fresh contents, in units of the case's own (docs/trust.md)."""

SURPRISE_GATE = "no_decay"
SURPRISE_TOLERANCE = 2.5e-2
"""That of the correctness suite for timed shapes under this gate (docs/measurements.md)."""


@dataclass(frozen=True)
class AuditCounts:
    """How many fresh contents of a timed case are audited, and whether another gate's are.

    quick: how many repetitions more are fetched, and compared if they were quick. paired: how many
    of those that were paired with the null submission are compared.
    """

    fresh: int
    surprise: bool
    quick: int
    paired: int


AUDITS = {
    "cuda": AuditCounts(fresh=2, surprise=True, quick=3, paired=2),
    "cpu": AuditCounts(fresh=1, surprise=True, quick=0, paired=0),
}
NO_AUDITS = AuditCounts(fresh=0, surprise=False, quick=0, paired=0)


@dataclass(frozen=True)
class Answer:
    """What a call must return for the inputs of one seed.

    gate: in place of the case's own, None where that is kept. input_digests: of the inputs whose
    bits do not depend on how many threads drew them, by argument name.
    """

    seed: int
    gate: str | None
    expected: Expected
    tolerance: float
    input_digests: dict[str, str]


@dataclass(frozen=True)
class Answers:
    """All that calls of one case are judged by.

    fixed: the run's own seed, at the case's tolerance. fresh: seeds that nobody could foresee.
    surprise: the same shape under a gate that forgets nothing; None where it is not asked.
    quick: how many more results are fetched, and compared if they were quick; paired: how many of
    repetitions that were paired with the null submission. later: the answers for their seeds.
    """

    fixed: Answer
    fresh: tuple[Answer, ...] = ()
    surprise: Answer | None = None
    quick: int = 0
    paired: int = 0
    later: Callable[[Sequence[int]], list[Answer]] | None = None


def fresh_seed() -> int:
    """A seed that the code under test cannot foresee."""
    return secrets.randbelow(SEED_LIMIT)


class AuditSeeds:
    """The secret of a run: every submission that it judges is audited with the same seeds.

    secret: of a run under way, None for a new one.
    """

    def __init__(self, secret: bytes | None = None) -> None:
        self.secret = secrets.token_bytes(16) if secret is None else secret

    def of(self, case: Case, count: int) -> list[int]:
        """Different seeds for the audits of a case, the same ones whenever asked in this run."""
        name = case.name.encode()
        drawn = (
            hashlib.sha256(self.secret + bytes([number]) + name).digest() for number in range(count)
        )
        return [int.from_bytes(digest[:8]) % SEED_LIMIT for digest in drawn]


def answers(
    case: Case, seed: int, counts: AuditCounts, seeds: AuditSeeds, device: torch.device
) -> Answers:
    """Compute the reference for every seed that calls of a case are judged at.

    A case that is not timed has one fresh seed, where audits are wanted at all.
    """
    audit_tolerance = case.tolerance * AUDIT_FACTOR
    fresh_count = counts.fresh if case.timed else min(counts.fresh, 1)
    surprise_seed, *fresh_seeds = seeds.of(case, 1 + fresh_count)
    asked = [_Asked(seed, None, case.tolerance)]
    asked += [_Asked(one, None, audit_tolerance) for one in fresh_seeds]
    if counts.surprise and case.timed:
        tolerance = max(case.tolerance, SURPRISE_TOLERANCE)
        asked.append(_Asked(surprise_seed, SURPRISE_GATE, tolerance))
    fixed, *others = _answer(case, asked, device)

    def later(some: Sequence[int]) -> list[Answer]:
        return _answer(case, [_Asked(one, None, audit_tolerance) for one in some], device)

    fresh, surprise = others[:fresh_count], others[fresh_count:]
    other_gate = surprise[0] if surprise else None
    return Answers(fixed, tuple(fresh), other_gate, counts.quick, counts.paired, later)


@dataclass(frozen=True)
class _Asked:
    seed: int
    gate: str | None
    tolerance: float


def _answer(case: Case, asked: Sequence[_Asked], device: torch.device) -> list[Answer]:
    cases = [replace(case, gate=one.gate) if one.gate else case for one in asked]
    results = expected_results(cases, [one.seed for one in asked], device)
    return [
        Answer(one.seed, one.gate, expected, one.tolerance, digests)
        for one, (expected, digests) in zip(asked, results, strict=True)
    ]
