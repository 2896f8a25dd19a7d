"""Uploaded archives read into memory, whole or not at all; nothing of them is written to a disk."""

from __future__ import annotations

import gzip
import io
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from judge.submission import MAX_BYTES, MAX_FILES, SubmissionError

ARCHIVES = (".zip", ".tar.gz", ".tgz")
_MAX_ENTRIES = 4 * MAX_FILES
_MAX_DEPTH = 32
_MAX_COMPONENT_BYTES = 255
_TAR_OVERHEAD = 8 * 2**20  # headers and padding
_DRIVE = re.compile(r"[A-Za-z]:")
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, tarfile.TarError, gzip.BadGzipFile, EOFError),
    *(RuntimeError, NotImplementedError, ValueError, OverflowError),  # encrypted, odd compression
)


def archive_suffix(name: str) -> str:
    """Which of ARCHIVES a file's name ends in, as it is written there; empty where in none."""
    return next((name[-len(end) :] for end in ARCHIVES if name.lower().endswith(end)), "")


def read_archive(path: Path) -> dict[str, bytes]:
    """The regular files of a .zip, .tar.gz or .tgz: contents by path.

    Raises SubmissionError with one line where the archive is damaged, encrypted or too large, or
    holds a path that leads out of it, a link, a device, or one name twice.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SubmissionError(f"archive of more than {MAX_BYTES >> 20} MiB")
        if archive_suffix(path.name) == ".zip":
            return _collected(_zip_members(path))
        return _collected(_tar_members(path))
    except SubmissionError as error:
        raise SubmissionError(f"{path}: {error}") from None
    except OSError as error:
        why = f"cannot be read: {error.strerror}" if error.strerror else "damaged archive"
        raise SubmissionError(f"{path}: {why}") from None
    except _BROKEN as error:
        raise SubmissionError(f"{path}: damaged or encrypted archive: {error}") from None


def _collected(members: Iterator[tuple[str, IO[bytes]]]) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    room = MAX_BYTES
    for name, stream in members:
        path = _inside(name)
        if path in files:
            raise SubmissionError(f"holds {path} twice")
        content = stream.read(room + 1)  # what a header says of its size is only a claim
        room -= len(content)
        if room < 0 or len(files) >= MAX_FILES:
            raise SubmissionError(f"more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB unpacked")
        files[path] = content
    for path in files:
        for folder in PurePosixPath(path).parents:
            if str(folder) in files:
                raise SubmissionError(f"holds {folder} as a file and as a folder")
    return files


def _inside(name: str) -> str:
    """The path in its shortest form. Raises SubmissionError where it is none below the archive."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    leads_out = name.startswith("/") or ".." in parts or "\\" in name or _DRIVE.match(name)
    if leads_out or not parts or "\0" in name:
        raise SubmissionError(f"holds a path that leads out of it: {name}")
    try:
        too_long = max(len(part.encode()) for part in parts) > _MAX_COMPONENT_BYTES
    except UnicodeEncodeError:
        raise SubmissionError("holds a name that is not Unicode") from None
    if too_long or len(parts) > _MAX_DEPTH:
        raise SubmissionError("holds a path that is too long")
    return "/".join(parts)


def _zip_members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        _check_count(len(entries))
        for entry in entries:
            kind = stat.S_IFMT(entry.external_attr >> 16)  # 0 where it was packed on Windows
            if entry.is_dir():
                _inside(entry.filename)
            elif kind not in (0, stat.S_IFREG):
                raise SubmissionError(f"holds a link or a device: {entry.filename}")
            else:
                with archive.open(entry) as stream:
                    yield entry.filename, stream


def _tar_members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    limit = MAX_BYTES + _TAR_OVERHEAD
    with gzip.open(path) as packed:
        content = packed.read(limit + 1)  # first, as tarfile reads headers of any length
    if len(content) > limit:
        raise SubmissionError(f"more than {MAX_BYTES >> 20} MiB unpacked")
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for number, entry in enumerate(archive, start=1):
            _check_count(number)
            if entry.isdir():
                continue
            if not entry.isreg() or entry.issparse():
                raise SubmissionError(f"holds a link, a device or a sparse file: {entry.name}")
            stream = archive.extractfile(entry)
            if stream is not None:
                yield entry.name, stream


def _check_count(number: int) -> None:
    if number > _MAX_ENTRIES:
        raise SubmissionError(f"more than {_MAX_ENTRIES} entries")
