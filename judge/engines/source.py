"""Which judge this process runs: a digest of the source, taken before that can change."""

from __future__ import annotations

import hashlib
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_FOLDERS = ("judge", "reference")


def _digest() -> str:
    digest = hashlib.sha256()
    for folder in _FOLDERS:
        for file in sorted((_ROOT / folder).rglob("*.py")):
            name, content = file.relative_to(_ROOT).as_posix(), file.read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


SOURCE_DIGEST = _digest()
"""SHA-256 over names and contents of the judge's Python files, when this was imported."""
