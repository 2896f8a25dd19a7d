"""The option of every command that reads or changes a store, and the attempts that some name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from judge.commands.usage import WrongUsage
from judge.hints import shown, suggestion
from judge.roster import normal
from judge.store.schema import StoreError
from judge.store.store import Attempt, Store, default_store


def store_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --store; it arrives as store_file."""
    return click.option(
        "--store",
        "store_file",
        type=click.Path(path_type=Path, dir_okay=False),
        help="The file that keeps results. Default: store.sqlite in $GDN_JUDGE_CACHE, else in "
        "~/.cache/gdn-judge; a lab should name one outside a cache.",
    )(command)


def open_store(path: Path | None, *, must_exist: bool = True) -> Store:
    """The store named, else the default one, whose folder is the judge's own. Raises StoreError."""
    if path is None:
        path = default_store()
        if not must_exist:
            _make_folder(path)
    return Store(path, must_exist=must_exist)


def attempts_of(store: Store, participant: str, attempt: str | None) -> list[Attempt]:
    """A participant's attempts, or those alone that bear the label `attempt`.

    Raises StoreError, and WrongUsage where there is no such participant or attempt.
    """
    who = normal(participant)
    people = sorted(store.participants())
    if who not in people:
        raise WrongUsage(f"{shown(who)} is nobody here; {suggestion(who, people)}")
    theirs = [one for one in store.attempts() if one.participant == who]
    if attempt is None:
        return theirs
    labels = sorted({one.label for one in theirs} - {""})
    if not labels:
        raise WrongUsage(f"{shown(who)} has a single upload; leave --attempt out")
    if normal(attempt) not in labels:
        raise WrongUsage(f"--attempt: {shown(attempt)} is not there; {suggestion(attempt, labels)}")
    return [one for one in theirs if one.label == normal(attempt)]


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}; name another file with --store") from None
