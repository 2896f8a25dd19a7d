"""Write the tables of adversaries and honest submissions into docs/trust.md.

    python scripts/write_trust_table.py

Nothing is run: the rows come from the files in tests/adversaries and tests/honest, what became of
each from the lines that the tests write where GDN_ADVERSARY_RESULTS names a file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.cells import NONE, escaped  # noqa: E402
from tests.adversary_files import Entry, adversaries, honest_ones  # noqa: E402

TRUST = ROOT / "docs" / "trust.md"
RESULTS = (
    ROOT / "docs" / "results" / "adversaries-cpu.jsonl",
    ROOT / "docs" / "results" / "h200" / "adversaries.jsonl",
)
BEGIN = "<!-- adversaries: written by scripts/write_trust_table.py -->"
END = "<!-- adversaries: end -->"
_LONGEST = 150

Line = dict[str, str]


@click.command()
def main() -> None:
    """Replace what lies between the two markers in docs/trust.md."""
    TRUST.write_text(with_tables(TRUST.read_text(), read_lines(RESULTS)))


def read_lines(paths: Iterable[Path]) -> list[Line]:
    """The lines of those of the files that exist, in order."""
    return [
        json.loads(line)
        for path in paths
        if path.exists()
        for line in path.read_text().splitlines()
    ]


def with_tables(document: str, lines: list[Line]) -> str:
    """The document with the tables between its markers. Raises ValueError where it has none."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no place for the tables: {BEGIN} and {END}")
    return "\n".join([before + begin, *_tables(lines), end + after])


def _tables(lines: list[Line]) -> Iterator[str]:
    by_file: dict[str, dict[str, Line]] = {}
    for line in lines:
        by_file.setdefault(line["file"], {})[line["device"]] = line
    family = ""
    for entry in adversaries():
        if entry.family != family:
            family = entry.family
            yield from ("", f"### {family.replace('_', ' ').capitalize()}", "")
            yield from ("| trick | what gave it away | where it ran |", "| --- | --- | --- |")
        yield _row(entry, by_file.get(entry.name, {}))
    yield from ("", "### Honest submissions", "")
    yield from ("| what it does | verdict | where it ran |", "| --- | --- | --- |")
    for entry in honest_ones():
        yield _row(entry, by_file.get(entry.name, {}))
    yield ""


def _row(entry: Entry, seen: dict[str, Line]) -> str:
    findings = dict.fromkeys(_finding(line) for line in seen.values())
    cells = (entry.trick, "<br>".join(findings) or "not run yet", ", ".join(seen) or NONE)
    return f"| {' | '.join(cells)} |"


def _finding(line: Line) -> str:
    if line["expected"].startswith("rules "):
        text = f"rules {line['rules']}: {line['rules_detail']}"
    else:
        text = f"{line['verdict']}: {line['detail']}" if line["detail"] else line["verdict"]
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return escaped(short)


if __name__ == "__main__":
    main()
