"""Tables of a page, read again."""

from __future__ import annotations


def rows(text: str) -> list[list[str]]:
    """The cells of every row of every table, titles included, rules not."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if not row[0].startswith("---")]


def row(text: str, *first: str) -> list[str]:
    """The cells after those that a row begins with; there must be one such row."""
    (found,) = [cells for cells in rows(text) if cells[: len(first)] == list(first)]
    return found[len(first) :]
