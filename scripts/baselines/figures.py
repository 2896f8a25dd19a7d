"""Figures that were not measured with this judge, and the least time that a case can take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from judge.case import CHUNK, HEAD_DIM, Case

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "results" / "earlier_h200_figures.yaml"
ByCase = dict[str, float]


class Ceilings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a device was measured to reach."""

    tflop_per_s: float
    tb_per_s: float


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A case's work as it was published; in 10⁶ bytes, 10⁹ FLOPs and ms."""

    mbytes: float
    gflop: float
    floor_ms: float


class Earlier(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the file holds; its head says what each part means. By scope, implementation, case."""

    machine: str
    versions: dict[str, str]
    protocol: dict[str, str]
    ceilings: Ceilings
    work: dict[str, Published]
    events_ms: dict[str, dict[str, ByCase]]
    graph_ms: dict[str, dict[str, ByCase]]


def load_earlier(path: Path = FIGURES) -> Earlier:
    """Read the figures. Raises msgspec.ValidationError where the file has another form."""
    return msgspec.yaml.decode(path.read_bytes(), type=Earlier)


@dataclass(frozen=True)
class Work:
    """What a core call of a case must move and multiply."""

    moved_bytes: int
    flops: int

    def floor_ms(self, ceilings: Ceilings) -> float:
        """The larger of both by the ceilings, in milliseconds."""
        moving = self.moved_bytes / (1e12 * ceilings.tb_per_s)
        multiplying = self.flops / (1e12 * ceilings.tflop_per_s)
        return 1e3 * max(moving, multiplying)


def work_of(case: Case) -> Work:
    """Every input read once, every result written once; the six products of docs/lab.md in full.

    A counts whole and the last chunk as a full one, unlike in judge/floor.py, which must never
    exceed what an honest kernel needs.
    """
    tokens = case.batch * case.tokens
    chains = case.batch * case.v_heads
    moved = tokens * 2 * case.qk_heads * HEAD_DIM * 2
    moved += tokens * case.v_heads * (2 * HEAD_DIM * 2 + CHUNK * 2 + 4 + 4)
    states = 1 if case.initial_state is None else 2
    moved += states * chains * HEAD_DIM * HEAD_DIM * 4
    padded = -(-case.tokens // CHUNK) * CHUNK
    a_token = 3 * 2 * HEAD_DIM * HEAD_DIM + 3 * 2 * CHUNK * HEAD_DIM
    return Work(moved, chains * padded * a_token)
