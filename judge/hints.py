"""What a complaint says of a name that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

MOST_NAMED = 16


def suggestion(name: str, known: Sequence[str]) -> str:
    """What to write in place of a name that is not among the known ones."""
    near = difflib.get_close_matches(name, known, n=3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    if not known:
        return "there is none to name"
    more = [f"… ({len(known)} in all)"] if len(known) > MOST_NAMED else []
    return f"use one of {', '.join([*known[:MOST_NAMED], *more])}"


def shown(text: str) -> str:
    """Text from a file or a command line, quoted and short enough for a message."""
    return repr(text if len(text) <= 40 else text[:40] + "…")
