"""Folders that a child has filled: walking and removing them, whatever it put there."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

_LIMIT_S = 120.0


def walk(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Everything below `folder`, links not followed; folders that cannot be read are left out."""
    waiting = [os.fspath(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:  # gone, closed, or a path that is too long
            continue


def remove(path: Path) -> None:
    """Remove a file or a folder and all below it, closed or deeply nested folders included."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except (OSError, RecursionError):
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf", "--one-file-system"]):
            subprocess.run(
                [*command, "--", str(path)],
                stderr=subprocess.DEVNULL,
                timeout=_LIMIT_S,
                check=False,
            )


def give(folder: Path, uid: int) -> None:
    """Make an account the owner of a folder and all below it, which the judge has just made."""
    os.chown(folder, uid, uid)
    for entry in walk(folder):
        os.chown(entry.path, uid, uid, follow_symlinks=False)
