"""Every submission below a folder of uploads: whose it is, which attempt, and its files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path, PurePosixPath

from judge.archives import archive_suffix, read_archive
from judge.card import CARD, Card, read_card
from judge.roster import normal
from judge.submission import (
    ENTRY,
    MAX_FILES,
    MAX_SOURCE_BYTES,
    STUDENT_FOLDER,
    Submission,
    SubmissionError,
    file_is_there,
    find_submission,
    submission_from,
)
from judge.text import plain, writable

_SKIPPED = frozenset({"__pycache__", "__MACOSX", "node_modules"})
_MOST_LOOKED_AT = 4 * MAX_FILES
_MAX_ENTRY_DEPTH = 3  # upload's folder / student / tilelang_fwd.py


class NoUploadsError(SubmissionError):
    """A folder that can be read and holds no upload."""


@dataclass(frozen=True)
class Place:
    """Where an upload lies. label: the attempt's name, empty where uploads have none.

    Bytes of a name that are not UTF-8 stand in participant and label as \\xNN.
    """

    path: Path
    participant: str
    label: str


@dataclass(frozen=True)
class Upload:
    """One attempt. submission: None where there is a problem, told in one line.

    submitted: when the newest of its files was changed, ISO 8601 UTC; an archive is one file.
    """

    place: Place
    submission: Submission | None
    card: Card
    problem: str
    submitted: str = ""


def find_uploads(folder: Path) -> list[Place]:
    """Every upload below `folder`, each participant's attempts in the natural order of their names.

    An upload is a .py file, an archive, or a folder that holds tilelang_fwd.py itself or as
    student/tilelang_fwd.py; one level of folders may lie between a participant's name and the
    attempts. A folder that holds nothing of the kind is an upload too, with a problem, and so is
    one that may not be read. `folder` may be an upload itself. Raises SubmissionError where
    `folder` may not be read, NoUploadsError where nothing is found.
    """
    try:
        if _has_its_form(folder):
            return [Place(folder, normal(_stem(folder.resolve())), "")]
        if file_is_there(folder):
            raise SubmissionError(
                f"{folder}: a file that is no upload; give the folder of all uploads, or an upload "
                "(.py, .zip, .tar.gz); run.py --submission grades one without a store"
            )
        places = [place for entry in _entries(folder) for place in _places(entry)]
    except OSError as error:
        raise SubmissionError(f"{folder}: {error.strerror}") from None
    if not places:
        raise NoUploadsError(
            f"{folder}: holds no submission: no .py file, no archive (.zip, .tar.gz), no folder"
        )
    return places


def left_alone(folder: Path) -> list[Path]:
    """Files below `folder` that are no uploads, hidden ones aside."""
    if _is_upload(folder):
        return []
    return [e for e in _entries(folder) if not (_is_upload(e) or e.is_dir() or e.is_symlink())]


def read_upload(place: Place) -> Upload:
    """Read an upload into memory; whatever is wrong with it is its problem, never an exception."""
    changed = ""
    try:
        changed = _changed(place.path)
        if str(place.path) != writable(str(place.path)):
            raise SubmissionError("its path is not UTF-8; rename it")
        if place.path.is_symlink():
            raise SubmissionError(f"{place.path}: is a link; put the upload itself there")
        submission, card = _read(place.path)
    except SubmissionError as error:
        return Upload(place, None, Card(), _told(place, error), changed)
    except (OSError, RecursionError, MemoryError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)  # no path: boards say it
        problem = plain(f"cannot be read: {why or type(error).__name__}")
        return Upload(place, None, Card(), problem, changed)
    name = f"{place.participant}-{place.label}" if place.label else place.participant
    return Upload(place, replace(submission, name=plain(name)), card, "", changed)


def _told(place: Place, error: SubmissionError) -> str:
    """The complaint without where the upload lies on this machine, since boards show it."""
    text = str(error)
    for path in (place.path, os.path.realpath(place.path)):
        text = text.removeprefix(f"{path}: ").removeprefix(f"{path}/")
    return plain(text)


def upload_state(place: Place) -> str:
    """Sizes and times of an upload's files as one text, which is another one once any changes."""
    told = []
    with suppress(OSError):
        for at in (place.path, *islice(place.path.rglob("*"), _MOST_LOOKED_AT)):
            found = at.lstat()
            told.append(f"{at.name}\0{found.st_size}\0{found.st_mtime_ns}\0{found.st_ino}")
    return "\0".join(told)


def _places(entry: Path) -> Iterator[Place]:
    participant = normal(_stem(entry))
    if entry.is_symlink() or _is_upload(entry):
        yield Place(entry, participant, "")
    elif entry.is_dir():
        attempts = _attempts(entry)
        for attempt in attempts:
            yield Place(attempt, participant, normal(_stem(attempt)))
        if not attempts:
            yield Place(entry, participant, "")


def _attempts(folder: Path) -> list[Path]:
    """A participant's attempts; none where the folder may not be read, which reading it tells."""
    with suppress(OSError, SubmissionError):
        return [a for a in _entries(folder) if a.is_symlink() or _is_upload(a)]
    return []


def _is_upload(path: Path) -> bool:
    """Whether to read it as one: what may not be looked into counts, as reading it tells why."""
    try:
        return _has_its_form(path)
    except OSError:
        return True


def _has_its_form(path: Path) -> bool:
    """Whether it has an upload's form. Raises OSError where that cannot be known."""
    if path.is_dir():
        return any(file_is_there(at / ENTRY) for at in (path, path / STUDENT_FOLDER))
    return file_is_there(path) and (path.suffix == ".py" or bool(archive_suffix(path.name)))


def _changed(path: Path) -> str:
    """When the newest file was changed, as far as the first thousands of a folder tell."""
    below = islice(path.rglob("*"), _MOST_LOOKED_AT) if path.is_dir() else ()
    files = [at for at in (path, *below) if at.is_symlink() or not at.is_dir()]
    times = [at.lstat().st_mtime for at in files or [path]]
    return datetime.fromtimestamp(int(max(times)), UTC).isoformat()


def _stem(path: Path) -> str:
    """The name without an upload's suffix; a folder's whole name, dots and all."""
    name = writable(path.name)
    with suppress(OSError):  # a link to where nobody may look
        if path.is_dir():
            return name
    return name.removesuffix(archive_suffix(name) or ".py")


def _entries(folder: Path) -> list[Path]:
    try:
        found = [e for e in folder.iterdir() if not e.name.startswith(".")]
    except OSError as error:
        raise SubmissionError(f"{folder}: {error.strerror}") from None
    return sorted((e for e in found if e.name not in _SKIPPED), key=lambda e: _natural(e.name))


def _natural(name: str) -> tuple[Sequence[str | int], str]:
    """A key by which 10 comes after 9: text and whole numbers take turns."""
    parts = re.split(r"([0-9]{1,18})", normal(name).casefold())
    return [int(part) if index % 2 else part for index, part in enumerate(parts)], name


def _read(path: Path) -> tuple[Submission, Card]:
    if path.is_dir():
        found = find_submission(path)
        files = dict(found.files)
        card = files.pop(CARD, None)
        outer = path / CARD
        if card is None and outer.is_file() and not outer.is_symlink():
            with outer.open("rb") as file:
                card = file.read(MAX_SOURCE_BYTES + 1)
        submission = submission_from(found.name, str(path), found.entry, files)
    elif archive_suffix(path.name):
        files, card = _submitted(path, read_archive(path))
        submission = submission_from(path.name, str(path), ENTRY, files)
    else:
        with path.open("rb") as file:
            content = file.read(MAX_SOURCE_BYTES + 1)  # one byte more is refused below
        card = None
        submission = submission_from(path.name, str(path), ENTRY, {ENTRY: content})
    return submission, read_card(card) if card is not None else Card()


def _submitted(path: Path, unpacked: dict[str, bytes]) -> tuple[dict[str, bytes], bytes | None]:
    """Of an archive's files the submission's, relative to its folder, and its card."""
    files = {name: content for name, content in unpacked.items() if _counts(PurePosixPath(name))}
    entries = [name for name in files if PurePosixPath(name).name == ENTRY]
    depth = min((name.count("/") for name in entries), default=_MAX_ENTRY_DEPTH)
    shallow = [name for name in entries if name.count("/") == depth]
    sources = [name for name in files if name.endswith(".py")]
    if not entries and len(sources) == 1:
        return {ENTRY: files[sources[0]]}, _card(files, PurePosixPath(sources[0]).parent)
    if len(shallow) != 1 or depth >= _MAX_ENTRY_DEPTH:
        what = f"{len(shallow)} files {ENTRY}" if len(shallow) > 1 else f"no {ENTRY}"
        raise SubmissionError(f"{path}: holds {what} at its top; pack the folder that holds one")
    root = PurePosixPath(shallow[0]).parent
    prefix = "" if root == PurePosixPath(".") else f"{root}/"
    card = _card(files, root)
    below = {n.removeprefix(prefix): c for n, c in files.items() if n.startswith(prefix)}
    below.pop(CARD, None)
    return below, card


def _card(files: dict[str, bytes], root: PurePosixPath) -> bytes | None:
    """The card in the submission's folder, else in one that encloses it."""
    places = [str(folder / CARD) for folder in (root, *root.parents)]
    return next((files[place] for place in places if place in files), None)


def _counts(path: PurePosixPath) -> bool:
    skipped = any(part.startswith(".") or part in _SKIPPED for part in path.parts)
    return not skipped and path.suffix != ".pyc"
