"""All that the champion's page is made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from judge.floor import Ceilings
from judge.submission import find_submission
from scripts.champion.raw import Raw
from scripts.work import H200


@dataclass(frozen=True)
class Material:
    """All that the page is made of. submission: the champion. pictures: the folder they go to."""

    raw: Raw
    submission: Path
    page: Path
    pictures: Path

    @property
    def ceilings(self) -> Ceilings:
        """The device's measured ones, else what an H200 was measured to reach before."""
        return self.raw.ceilings or H200

    @cached_property
    def is_measured(self) -> bool:
        """Whether the champion is still, byte for byte, what public.json measured."""
        digest = find_submission(self.submission).digest
        return self.raw.public is not None and self.raw.public.submission.digest == digest
