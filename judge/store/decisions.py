"""What assistants decide over the judge's head; every decision is kept, and the last one counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What is decided: void earns no rank, override sets the total, lift undoes what stood."""

    VOID = "void"
    OVERRIDE = "override"
    LIFT = "lift"


@dataclass(frozen=True)
class Decision:
    """One decision about a participant.

    attempt: the label of the only attempt that it is about, None for all of them, also later ones.
    score: of an override, the total from 0 to 120. made: ISO 8601 UTC.
    """

    participant: str
    attempt: str | None
    kind: Kind
    score: float | None
    reason: str
    author: str
    made: str


Standing = Mapping[tuple[str, str | None], Decision]
"""The decision that stands, by participant and attempt."""


def standing(trail: Iterable[Decision]) -> Standing:
    """What stands after all decisions, oldest first; nothing where the last one lifted it."""
    stand: dict[tuple[str, str | None], Decision] = {}
    for decision in trail:
        stand[decision.participant, decision.attempt] = decision
    return {key: decision for key, decision in stand.items() if decision.kind is not Kind.LIFT}


def about(decisions: Standing, participant: str, attempt: str) -> Decision | None:
    """The decision about an attempt: one about it alone goes before one about all."""
    return decisions.get((participant, attempt)) or decisions.get((participant, None))
