"""Grading submissions of this repository in one run of `grade`, each record kept as a file."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from judge.record import Record, to_json
from judge.slices import SLICES
from judge.store.store import Store

ROOT = Path(__file__).resolve().parents[1]
ALL = "all"
INTERRUPTED = 130
WRONG_USAGE = 2
_SLICE_BY_SMS = {one.sms: one.name for one in SLICES.values()}


@dataclass(frozen=True)
class Entry:
    """A submission to grade. path: below the repository. record: the file that is to be written.

    name: of the upload; two entries may be of one path, but not of one name.
    """

    name: str
    path: str
    record: Path


def budget_options(budget: str) -> list[str]:
    """Options of run.py and `grade` for a number of SMs, or all; a slice is asked for as such."""
    if budget == ALL:
        return []
    name = _SLICE_BY_SMS.get(int(budget))
    return ["--slice", name] if name else ["--sms", budget]


def grade_entries(entries: Sequence[Entry], options: Sequence[str], label: str) -> int:
    """Grade into a store that is thrown away, and keep each record as soon as it is there.

    options: of `grade`, folder and store aside. label: before each line that it prints. Its exit
    status; it has told why on standard error.
    """
    with tempfile.TemporaryDirectory() as work:
        uploads, store = Path(work) / "uploads", Path(work) / "store.sqlite"
        for entry in entries:
            skipped = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / entry.path, uploads / entry.name, ignore=skipped)
        command = [sys.executable, str(ROOT / "run.py"), "grade", str(uploads)]
        command += ["--store", str(store), *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                for line in process.stdout or ():
                    click.echo(f"{label}, {line.rstrip()}")
                    _keep_records(store, entries)
            except KeyboardInterrupt:  # `grade` has had it too, and ends
                process.wait()
        _keep_records(store, entries)
    return process.returncode


def keep_record(record: Record, path: str, file: Path) -> None:
    """Write a record of the submission at `path`, whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(to_json(shortened(record, path)) + "\n")
    part.replace(file)


def shortened(record: Record, path: str) -> Record:
    """A record without the folders in which it was made, named as its submission is."""
    log = Path(record.submission.log).name
    submission = replace(record.submission, name=Path(path).name, path=path, log=log)
    return replace(record, submission=submission)


def _keep_records(store: Path, entries: Sequence[Entry]) -> None:
    """Write what is in the store and has no file yet."""
    if not store.is_file():
        return
    by_name = {entry.name: entry for entry in entries}
    with Store(store, must_exist=True) as opened:
        for result in opened.results():
            entry = by_name[result.participant]
            if not entry.record.exists():
                keep_record(result.record, entry.path, entry.record)
