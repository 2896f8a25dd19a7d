"""Folders that may not be read, also where the tests run as root, whom permissions do not bind."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NOBODY = 65534


@contextmanager
def open_folder() -> Iterator[Path]:
    """A temporary folder that every user can reach; pytest's are their owner's alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        try:
            yield folder
        finally:
            for place, folders, _ in os.walk(folder):
                for one in folders:
                    (Path(place) / one).chmod(0o755)


@contextmanager
def bound_by_permissions() -> Iterator[None]:
    """Look at files as a user who is not root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
