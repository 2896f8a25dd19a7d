"""What only an extra of pyproject.toml installs: asked for in one line where it is missing."""

from __future__ import annotations

import importlib.util
import sys


def require(module: str, extra: str) -> None:
    """Exit with status 2 where a module is not installed. extra: the one that installs it."""
    if importlib.util.find_spec(module) is None:
        print(f"Error: needs {module}: pip install -e '.[{extra}]'", file=sys.stderr)
        raise SystemExit(2)
