"""The figures of the report that the ladder follows: docs/results/report_figures.yaml."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "results" / "report_figures.yaml"
TIE = 0.03
"""Two medians whose ratio is closer to 1 than this have no order."""


class Ratio(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A version's time over another one's on a case; where: its text or a figure of it."""

    version: str
    of: str
    case: str
    ratio: float
    where: str


class Report(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the file holds; its head says what each part means. Times in ms, by name and case."""

    machine: str
    sms: int
    protocol: str
    medians_ms: dict[str, dict[str, float]]
    ratios: list[Ratio]
    without_figures: dict[str, str]
    public_ms: dict[str, dict[str, float]]
    scores: dict[str, dict[str, float]]
    totals: dict[str, dict[str, float]]
    shared_memory_kb: dict[str, float]
    stalls_pct: dict[str, dict[str, dict[str, float]]]
    tensor_active_pct: dict[str, float | list[float]]

    def median(self, version: str, case: str) -> float | None:
        """The report's median in ms, None where it gives none."""
        return self.medians_ms.get(version, {}).get(case)

    def relative(self, version: str, of: str, case: str) -> list[float]:
        """A version's time over another one's: of its medians, or the ratios that it states."""
        above, below = self.median(version, case), self.median(of, case)
        if above is not None and below is not None:
            return [above / below]
        stated = [one for one in self.ratios if (one.version, one.case) == (version, case)]
        told = []
        for one in stated:
            middle, base = self.median(one.of, case), self.median(of, case)
            if one.of == of:
                told.append(one.ratio)
            elif middle is not None and base is not None:
                told.append(one.ratio * middle / base)
        return told


def load_report(path: Path = FIGURES) -> Report:
    """Read the figures. Raises msgspec.ValidationError where the file has another form."""
    return msgspec.yaml.decode(path.read_bytes(), type=Report)


@dataclass(frozen=True)
class Reversal:
    """Two versions whose order on a case is not the report's: `ahead` was ahead there.

    theirs, ours: medians in ms of `ahead` and of `behind`. tied: whether ours are equal within TIE,
    and not the other way round.
    """

    case: str
    ahead: str
    behind: str
    theirs: tuple[float, float]
    ours: tuple[float, float]
    tied: bool


def reversals(report: Report, ours: dict[str, dict[str, float]]) -> list[Reversal]:
    """Every pair of versions that the report orders and our medians do not order in the same way.

    ours: medians in ms by version and case, of what passed.
    """
    found = []
    for ahead, theirs in report.medians_ms.items():
        for behind, others in report.medians_ms.items():
            for case in theirs.keys() & others.keys():
                if not _before(theirs[case], others[case]):
                    continue
                first, second = ours.get(ahead, {}).get(case), ours.get(behind, {}).get(case)
                if first is None or second is None or _before(first, second):
                    continue
                pairs = (theirs[case], others[case]), (first, second)
                tied = not _before(second, first)
                found.append(Reversal(case, ahead, behind, *pairs, tied))
    cases = list(report.medians_ms["v01_gemm"])
    return sorted(found, key=lambda one: (one.tied, cases.index(one.case)))


def _before(first: float, second: float) -> bool:
    return first * (1 + TIE) < second
