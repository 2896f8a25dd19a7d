"""Pages that scripts write parts of: blocks between two markers, and the tables in them.

<!-- ladder: times -->
what a script writes
<!-- ladder: end -->
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


class BlockError(ValueError):
    """Markers that do not fit; one line."""


def rewrite(document: str, mark: str, blocks: Mapping[str, Callable[[], Iterable[str]]]) -> str:
    """The document with the blocks of `mark` written anew; what lies outside them stays.

    blocks: by name, what makes a block's lines. Raises BlockError where a block has a name that
    means nothing, is there twice or has no end.
    """
    end = f"<!-- {mark}: end -->"
    block = re.compile(rf"<!-- {mark}: (?!end)([a-z0-9-]+) -->\n.*?{end}", re.DOTALL)
    names = block.findall(document)
    if document.count(f"<!-- {mark}: ") != 2 * len(names) or len(set(names)) < len(names):
        raise BlockError("a marker is without its pair, or there twice")
    if unknown := set(names) - blocks.keys():
        raise BlockError(f"no block is called {min(unknown)}; there are {', '.join(blocks)}")

    def written(found: re.Match[str]) -> str:
        body = "\n".join(blocks[found[1]]()).strip("\n")
        return f"<!-- {mark}: {found[1]} -->\n\n{body}\n\n{end}"

    return block.sub(written, document)


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
