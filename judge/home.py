"""The judge's own folder, which holds all that it keeps."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "GDN_JUDGE_CACHE"


def cache_root() -> Path:
    """The judge's folder: $GDN_JUDGE_CACHE, else gdn-judge below $XDG_CACHE_HOME or ~/.cache."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().resolve() / "gdn-judge"
