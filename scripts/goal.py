"""What measurements are held to, and whether they meet it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scripts.cells import cell, yes
from scripts.markdown import table

UNKNOWN = "not measured yet"
"""Found where a record is missing."""


@dataclass(frozen=True)
class Goal:
    """One demand, or an aim, which may be missed. holds: None where a record is missing."""

    asked: str
    found: str
    holds: bool | None
    aim: bool = False


def goal_table(goals: Iterable[Goal], title: str = "asked") -> Iterator[str]:
    """All of them as a table. title: what stands above the demands."""
    rows = [[goal.asked, cell(goal.found), yes(goal.holds)] for goal in goals]
    yield from table([title, "found", "holds"], rows, left=(0, 1, 2))


def unmet(goals: Iterable[Goal]) -> Iterator[str]:
    """A line for each that does not hold, or of which that is not known."""
    for goal in goals:
        if not goal.holds:
            word = "not known" if goal.holds is None else "does not hold"
            yield f"{word}: {goal.asked}: {goal.found}"
