"""Finding a submission on disk and taking a snapshot of it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from judge.hints import suggestion

ENTRY = "tilelang_fwd.py"
STUDENT_FOLDER = "student"
MAX_FILES = 2000
MAX_BYTES = 64 * 1024 * 1024
MAX_SOURCE_BYTES = 256 * 1024
MAX_ALL_SOURCE_BYTES = 1024 * 1024
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules"})


class SubmissionError(ValueError):
    """A path that is no submission; the text is one line that says what would be."""


@dataclass(frozen=True)
class Submission:
    """A participant's files as they were when grading began.

    entry: the module file that exports the function, among `files`. files: contents by path
    relative to the submission's folder. digest: SHA-256 over names and contents, hexadecimal.
    """

    name: str
    path: str
    entry: str
    files: dict[str, bytes]
    digest: str


def find_submission(path: Path) -> Submission:
    """Read the submission at `path`.

    A folder with tilelang_fwd.py in it, a folder that holds such a folder as student/, or one .py
    file that stands alone. student/ may not be a link: what it leads to need not be the
    participant's. Raises SubmissionError.
    """
    try:
        return _found(path)
    except OSError as error:
        raise SubmissionError(f"{path}: cannot be read: {error.strerror}") from None


def file_is_there(path: Path) -> bool:
    """Whether `path` leads to a regular file. Raises OSError where that cannot be known."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _found(path: Path) -> Submission:
    if file_is_there(path):
        if path.suffix != ".py":
            raise SubmissionError(
                f"{path}: not a .py file; give a .py file or a folder with {ENTRY}"
            )
        if path.name == ENTRY:
            return _snapshot(path.resolve().parent, path)
        if not path.stem.isidentifier():
            raise SubmissionError(f"{path}: not a module's name; use letters, digits and _ only")
        return submission_from(path.stem, str(path), path.name, {path.name: path.read_bytes()})
    for folder in (path, path / STUDENT_FOLDER):
        if file_is_there(folder / ENTRY):
            if folder != path and folder.is_symlink():
                raise SubmissionError(f"{folder}: is a link; put the folder itself there")
            return _snapshot(folder.resolve(), path)
    if not path.exists():
        raise SubmissionError(f"{path}: no such file or folder")
    if not path.is_dir():
        raise SubmissionError(f"{path}: neither a file nor a folder; give a folder with {ENTRY}")
    below = _submissions_below(path)
    hint = "add the file that exports gdn_prefill_forward"
    if below:
        hint = f"below it, {suggestion('', below)}"
    what = "a folder that " if path.suffix == ".py" else ""
    raise SubmissionError(
        f"{path}: {what}holds neither {ENTRY} nor {STUDENT_FOLDER}/{ENTRY}; {hint}"
    )


def _submissions_below(folder: Path) -> list[str]:
    """Folders right in this one that could be graded. Raises OSError where it cannot be listed."""
    found = []
    for one in islice(folder.iterdir(), MAX_FILES):
        with suppress(OSError):  # one that may not be looked into
            if file_is_there(one / ENTRY) or file_is_there(one / STUDENT_FOLDER / ENTRY):
                found.append(one.name)
    return sorted(found)


def _snapshot(folder: Path, given: Path) -> Submission:
    files: dict[str, bytes] = {}
    total = 0
    try:
        for file in _files_below(folder):
            if not file.resolve().is_relative_to(folder):
                raise SubmissionError(f"{file}: links out of the submission; copy the file instead")
            total += file.stat().st_size
            if total > MAX_BYTES or len(files) >= MAX_FILES:
                raise SubmissionError(
                    f"{folder}: more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB; "
                    "remove what the kernel does not need"
                )
            files[file.relative_to(folder).as_posix()] = file.read_bytes()
    except OSError as error:
        raise SubmissionError(f"{error.filename}: {error.strerror}") from None
    name = folder.parent.name if folder.name == STUDENT_FOLDER else folder.name
    return submission_from(name, str(given), ENTRY, files)


def _files_below(folder: Path) -> Iterator[Path]:
    """Regular files, hidden ones, caches and virtual environments left out. Raises OSError."""

    def refuse(error: OSError) -> None:
        raise error

    for place, folders, names in os.walk(folder, onerror=refuse):
        here = Path(place)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in _SKIPPED_FOLDERS
            and not (here / name / "pyvenv.cfg").exists()
        )
        for name in sorted(names):
            file = here / name
            if not name.startswith(".") and file.suffix != ".pyc" and file.is_file():
                yield file


def submission_from(name: str, path: str, entry: str, files: dict[str, bytes]) -> Submission:
    """A submission of these files; its digest follows from them. Raises SubmissionError."""
    source = [len(content) for file, content in files.items() if file.endswith(".py")]
    if max(source) > MAX_SOURCE_BYTES or sum(source) > MAX_ALL_SOURCE_BYTES:
        raise SubmissionError(
            f"{path}: Python source of more than {MAX_SOURCE_BYTES >> 10} KiB in a file or "
            f"{MAX_ALL_SOURCE_BYTES >> 10} KiB in all; keep data in files of another kind"
        )
    digest = hashlib.sha256()
    for file, content in sorted(files.items()):
        digest.update(os.fsencode(file) + f"\0{len(content)}\0".encode())
        digest.update(content)
    return Submission(name, path, entry, files, digest.hexdigest())
