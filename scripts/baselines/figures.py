"""Figures that were not measured with this judge."""

from __future__ import annotations

from pathlib import Path

import msgspec

from judge import floor

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "results" / "earlier_h200_figures.yaml"
ByCase = dict[str, float]


class Ceilings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a device was measured to reach."""

    tflop_per_s: float
    tb_per_s: float

    @property
    def rates(self) -> floor.Ceilings:
        """The same a second; what the cache holds is not known."""
        return floor.Ceilings(1e12 * self.tb_per_s, 1e12 * self.tflop_per_s, cache_bytes=0)


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
