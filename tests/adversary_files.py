"""Reading the adversaries and the honest submissions: what each file says of itself.

The docstring of a file begins with one line that names the trick. Lines of the form `Key: value`
at its end are read here:

    Caught as: CHEAT            a verdict, several joined by " or ", or `rules forbidden_import`
    Evidence: was replaced      what the verdict's line must contain; optional
    Needs: CPU or GPU           where it runs; ", sandbox" where only a sandbox stops it
    Limit: first_call 3         seconds for a phase, or `memory 2` in GiB; optional
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("adversaries")
HONEST_FOLDER = Path(__file__).with_name("honest")
COMMON = FOLDER / "common"
_KEYS = ("Caught as", "Evidence", "Needs", "Limit")


@dataclass(frozen=True)
class Entry:
    """One file.

    family: name of its folder. trick: the docstring's first line. caught_as: verdicts, any of
    which is right, or empty for an honest submission. rules: the expected rules word or empty.
    devices: "cpu", "gpu". limit: phase or "memory" with its number, or None.
    """

    path: Path
    family: str
    trick: str
    caught_as: tuple[str, ...]
    rules: str
    evidence: str
    devices: frozenset[str]
    sandbox: bool
    limit: tuple[str, float] | None

    @property
    def name(self) -> str:
        """family/file, as tests and tables name it."""
        return f"{self.family}/{self.path.stem}"


def adversaries() -> list[Entry]:
    """All adversaries, by family and name."""
    files = sorted(FOLDER.glob("*/*.py"))
    return [read_entry(path) for path in files if path.parent != COMMON]


def honest_ones() -> list[Entry]:
    """All honest submissions, by name."""
    return [read_entry(path) for path in sorted(HONEST_FOLDER.glob("*.py"))]


def read_entry(path: Path) -> Entry:
    """What a file says of itself. Raises ValueError where its docstring lacks something."""
    lines = (ast.get_docstring(ast.parse(path.read_text())) or "").splitlines()
    if not lines:
        raise ValueError(f"{path}: no docstring")
    values = {
        key: line.removeprefix(f"{key}:").strip()
        for line in lines
        for key in _KEYS
        if line.startswith(f"{key}:")
    }
    needs, _, more = values.get("Needs", "").partition(", ")
    devices = frozenset(word.lower() for word in needs.split(" or "))
    if not devices <= {"cpu", "gpu"} or more not in ("", "sandbox"):
        raise ValueError(f"{path}: 'Needs: {values.get('Needs', '')}' is not understood")
    caught = values.get("Caught as", "")
    is_rules = caught.startswith("rules ")
    phase, _, number = values.get("Limit", "").partition(" ")
    return Entry(
        path=path,
        family=path.parent.name,
        trick=lines[0].rstrip("."),
        caught_as=() if is_rules or not caught else tuple(caught.split(" or ")),
        rules=caught.removeprefix("rules ") if is_rules else "",
        evidence=values.get("Evidence", ""),
        devices=devices,
        sandbox=more == "sandbox",
        limit=(phase, float(number)) if phase else None,
    )
