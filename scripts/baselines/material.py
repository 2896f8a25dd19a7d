"""All that the baselines' page is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from judge.case import Case
from judge.checkpoints import CheckpointFile
from scripts.baselines.demands import demands
from scripts.baselines.figures import Earlier
from scripts.baselines.sessions import Measured
from scripts.goal import Goal
from scripts.ladder.report import Report


@dataclass(frozen=True)
class Material:
    """All that the page is made of.

    report: the figures of the lab's page for its slice. lab: its published checkpoints.
    submissions: names of all that must have been scored. page: what links are relative to.
    """

    measured: Measured
    earlier: Earlier
    report: Report
    lab: CheckpointFile
    cases: Sequence[Case]
    submissions: Sequence[str]
    folder: Path
    page: Path

    @property
    def names(self) -> list[str]:
        """The public cases, in the lab's order."""
        return [case.name for case in self.cases]

    @property
    def goals(self) -> list[Goal]:
        """What all this is held to."""
        return list(demands(self.measured, self.earlier, self.names, self.submissions))
