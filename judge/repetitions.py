"""How often a case is called."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Repetitions:
    """Calls after the first: warm-up calls, then timed ones."""

    warmup: int
    repetitions: int


UNTIMED = Repetitions(warmup=1, repetitions=1)
"""A case that is not timed is still called three times, for what is done from the third call on."""
