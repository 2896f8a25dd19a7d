"""What scripts/vary_champion.py measures, as it is written and read."""

from __future__ import annotations

from dataclasses import dataclass

from judge.verdict import Verdict
from scripts.in_process import Run

UNCHANGED = "champion"


@dataclass
class Change:
    """What a variant is; off: whether it takes an idea away."""

    name: str
    text: str
    off: bool


@dataclass
class Outcome:
    """One variant, or the champion itself, on one case.

    spread: (p90 - p10) / median. errors: of output and final_state in units of the case's
    tolerance, empty where they could not be compared. samples_ms: of all rounds.
    """

    case: str
    variant: str
    verdict: Verdict
    median_ms: float
    spread: float
    errors: list[float]
    samples_ms: list[float]


@dataclass
class Outcomes:
    """Everything measured in one run, and where."""

    run: Run
    changes: list[Change]
    outcomes: list[Outcome]
