"""All that the ladder's page is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from judge.check_report import CheckReport
from scripts.ladder.records import Ladder, Profile
from scripts.ladder.report import Report
from scripts.ladder.versions import FIRST


@dataclass(frozen=True)
class Material:
    """All that the page is made of.

    public: of each ladder by its SMs, medians in ms by public implementation and case. check: None
    where v14 was not compiled. check_file: where it is from. page: the document, which links are
    relative to. pictures: the folder that they go to.
    """

    ladders: Sequence[Ladder]
    report: Report
    public: Mapping[int, Mapping[str, Mapping[str, float]]]
    profiles: Sequence[Profile]
    check: CheckReport | None
    check_file: Path
    folder: Path
    page: Path
    pictures: Path

    @property
    def cases(self) -> list[str]:
        """The public cases, in the lab's order."""
        return list(self.report.medians_ms[FIRST])
