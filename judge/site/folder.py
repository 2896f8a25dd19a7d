"""Folders that are replaced as a whole: written beside the old one, then put in its place."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MARKER = ".gdn-judge-site"
_MARKER_TEXT = "Written by gdn-judge; this folder is replaced as a whole.\n"


class SiteError(ValueError):
    """A folder that cannot be written; the text is one line that says what to change."""


@contextmanager
def replaced(folder: Path, *, mode: int = 0o755) -> Iterator[Path]:
    """A new empty folder that takes the place of `folder` when the block ends without an error.

    Until then the old one stays as it is. Raises SiteError where something else than an earlier
    site is there, and where writing fails.
    """
    target = folder.resolve()
    check_replaceable(folder)
    new = target.with_name(f".{target.name}.new-{os.getpid()}")
    old = target.with_name(f".{target.name}.old-{os.getpid()}")
    try:
        try:
            new.mkdir(mode=mode, parents=True)
            (new / MARKER).write_text(_MARKER_TEXT)
            yield new
            if target.exists():
                target.rename(old)
            new.rename(target)
        finally:
            shutil.rmtree(new, ignore_errors=True)
            if old.exists() and not target.exists():
                old.rename(target)
            shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise SiteError(f"{folder}: {error.strerror or error}; name another folder (-o)") from None


def check_replaceable(folder: Path) -> None:
    """Raise SiteError where `folder` is there and is neither empty nor an earlier site."""
    try:
        if not folder.exists() and not folder.is_symlink():
            return
        if folder.is_dir() and ((folder / MARKER).is_file() or not any(folder.iterdir())):
            return
    except OSError as error:
        raise SiteError(f"{folder}: {error.strerror}; name another folder (-o)") from None
    raise SiteError(f"{folder}: is there and no earlier site; remove it or name another (-o)")
