"""The option of every command that reads or changes a store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from judge.store.store import Store, default_store


def store_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --store; it arrives as store_file."""
    return click.option(
        "--store",
        "store_file",
        type=click.Path(path_type=Path, dir_okay=False),
        help="The file that keeps results. Default: store.sqlite in the judge's own folder.",
    )(command)


def open_store(path: Path | None, *, must_exist: bool = True) -> Store:
    """The store named, else the default one. Raises StoreError."""
    return Store(path or default_store(), must_exist=must_exist)
