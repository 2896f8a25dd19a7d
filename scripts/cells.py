"""Cells of the pages' tables: numbers, words and text, and a dash where there is none."""

from __future__ import annotations

from judge.text import plain

NONE = "–"
NOISY = "~"
"""Stands before a time whose samples the judge calls noisy."""


def number(value: float | None, digits: int) -> str:
    """A number with so many digits behind the point."""
    return NONE if value is None else f"{value:.{digits}f}"


def quotient(above: float | None, below: float | None) -> str:
    """One number over another one."""
    return NONE if above is None or below is None else f"{above / below:.2f}"


def percent(value: float | None) -> str:
    """7.2 %, where the value is 7.2."""
    return NONE if value is None else f"{value:.1f} %"


def change(share: float | None) -> str:
    """+7.2 %, where the share is 0.072."""
    return NONE if share is None else f"{100 * share:+.1f} %"


def yes(value: bool | None) -> str:
    """Yes or no; None where that is not known."""
    return {True: "yes", False: "no", None: NONE}[value]


def cell(text: str) -> str:
    """Text of a child, as one short line."""
    return escaped(plain(text, 200))


def escaped(text: str) -> str:
    """Text that may hold what Markdown takes for its own."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
