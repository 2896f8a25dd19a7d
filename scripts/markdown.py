"""Pages of which parts are written by a script: the marked blocks, tables and pictures in them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

NOT_MEASURED = "Not measured yet."

Blocks = Mapping[str, Callable[[], Iterable[str]]]


class MarkerError(ValueError):
    """A page whose markers cannot be followed; one line."""


def with_blocks(document: str, mark: str, blocks: Blocks) -> str:
    """The document, what lies between <!-- MARK: NAME --> and <!-- MARK: end --> written anew.

    blocks: a block's lines by NAME. Raises MarkerError where a NAME is not among them or is there
    twice, or a block has no end.
    """
    end = f"<!-- {mark}: end -->"
    pattern = re.compile(rf"<!-- {mark}: (?!end)([a-z0-9-]+) -->\n.*?{end}", re.DOTALL)
    names = pattern.findall(document)
    if document.count(f"<!-- {mark}: ") != 2 * len(names) or len(set(names)) < len(names):
        raise MarkerError("a marker is without its pair, or there twice")
    if unknown := set(names) - blocks.keys():
        raise MarkerError(f"no block is called {min(unknown)}; there are {', '.join(blocks)}")

    def written(found: re.Match[str]) -> str:
        body = "\n".join(blocks[found[1]]()).strip("\n")
        return f"<!-- {mark}: {found[1]} -->\n\n{body}\n\n{end}"

    return pattern.sub(written, document)


def table(
    titles: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)
) -> Iterator[str]:
    """A table; the columns named in `left` are words, all others numbers."""
    words = {column % len(titles) for column in left}
    yield f"| {' | '.join(titles)} |"
    rule = ("---" if column in words else "---:" for column in range(len(titles)))
    yield f"| {' | '.join(rule)} |"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def link(file: Path, page: Path) -> str:
    """A file as the page names it."""
    return Path(os.path.relpath(file, page.parent)).as_posix()


def picture(stem: Path, page: Path, text: str) -> Iterator[str]:
    """The PNG of a picture, which leads to its SVG; stem: both without their suffix."""
    png, svg = (link(stem.with_suffix(f".{kind}"), page) for kind in ("png", "svg"))
    yield f"[![{text}]({png})]({svg})"
    yield ""
