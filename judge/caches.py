"""Where compiled kernels and logs lie."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from importlib import metadata
from pathlib import Path
from typing import BinaryIO

from judge.home import CACHE_VARIABLE, cache_root
from judge.sandbox.tree import walk

TARGET_VARIABLES = ("TILELANG_TARGET", "TILELANG_DEFAULT_TARGET")
"""What TileLang 0.1.9 and later versions read their target from; part of a kernel's cache key."""

_UNFINISHED = "tmp"
_MAX_CACHE_BYTES = 2**30
_MAX_CACHE_FILES = 50_000
_ROOT = Path(__file__).resolve().parents[1]
_KERNEL_SOURCE = _ROOT / "reference" / "preprocess_tilelang.py"
_COMPILE = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from reference.preprocess_tilelang import compile_kernels; compile_kernels()"
)


class CacheError(OSError):
    """The cache folder cannot be used; the text is one line that says what to change."""


class CompileError(RuntimeError):
    """The judge's own kernels do not compile; the text is the compiler's last line."""


def check_cache_root() -> None:
    """Make the cache folder. Raises CacheError where nothing can be written there."""
    try:
        if not cache_root().exists():
            cache_root().parent.mkdir(parents=True, exist_ok=True)
            cache_root().mkdir(mode=0o700, exist_ok=True)  # closed to the accounts of children
        log_folder().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=log_folder()):
            pass
    except OSError as error:
        text = f"{cache_root()}: {error.strerror}; set {CACHE_VARIABLE} to a folder of yours"
        raise CacheError(text) from None


def judge_kernels() -> Path:
    """TileLang's cache of the judge's own kernels; no child is told of it."""
    return cache_root() / "judge" / _compilers()


def compile_judge_kernels() -> dict[str, bytes]:
    """Compile the preprocessing kernels into `judge_kernels()` where it does not hold them.

    Returns the compiled files by path: read before any child starts and handed to each from the
    judge's memory, so that no child of a run reaches another's. Compiling is done by a process of
    its own, so that the judge needs no TileLang; lanes that share the folder do it one after the
    other. Raises CompileError with the last line of what went wrong.
    """
    folder = judge_kernels()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        return _compile_where_missing()


def _compile_where_missing() -> dict[str, bytes]:
    source = hashlib.sha256(_KERNEL_SOURCE.read_bytes()).hexdigest()
    targets = [os.environ.get(name, "") for name in TARGET_VARIABLES]
    marker = judge_kernels() / "compiled"
    wanted = "\n".join([source, *targets])
    if marker.is_file() and marker.read_text() == wanted:
        return _contents(judge_kernels())
    environment = os.environ | {
        "TILELANG_CACHE_DIR": str(judge_kernels()),
        "TILELANG_TMP_DIR": str(judge_kernels() / "tmp"),
    }
    finished = subprocess.run(
        [sys.executable, "-P", "-c", _COMPILE, str(_ROOT)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        lines = (finished.stderr or finished.stdout).strip().splitlines()
        raise CompileError(lines[-1] if lines else f"exit status {finished.returncode}")
    marker.write_text(wanted)
    return _contents(judge_kernels())


def submission_cache(digest: str) -> Path:
    """Where what a submission compiles is kept, by its content and the compilers' versions.

    No child sees this folder: each works on a copy, which the judge saves when the child has
    ended. What hostile code writes there reaches children of that same content only.
    """
    return cache_root() / "submissions" / digest[:24] / _compilers()


def compiler_variables(cache: Path) -> dict[str, str]:
    """Environment variables that send what a child compiles into folders below `cache`."""
    return {
        "TILELANG_CACHE_DIR": str(cache / "tilelang"),
        "TILELANG_TMP_DIR": str(cache / "tilelang" / _UNFINISHED),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "TORCH_EXTENSIONS_DIR": str(cache / "torch_extensions"),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "CUDA_CACHE_PATH": str(cache / "cuda"),
        "FLASHINFER_WORKSPACE_BASE": str(cache / "flashinfer"),
    }


def load_submission_cache(digest: str, target: Path) -> None:
    """Copy what is kept for a submission into a child's folder."""
    target.mkdir()
    kept = submission_cache(digest)
    if kept.is_dir():
        shutil.copytree(kept, target, dirs_exist_ok=True)


def save_submission_cache(digest: str, source: Path, uid: int | None) -> None:
    """Keep what a child that has ended or is stopped has in its copy: regular files that are new or
    changed.

    uid: the child's account, None for the judge's; files of any other account are another file's
    second name, and left. A disk that takes no more ends it quietly: a cache is no result.
    """
    kept = submission_cache(digest)
    owners = {os.geteuid()} | ({uid} if uid is not None else set())
    room = _MAX_CACHE_BYTES
    with contextlib.suppress(OSError):
        for number, entry in enumerate(walk(source)):
            found = entry.stat(follow_symlinks=False)
            path = Path(entry.path).relative_to(source)
            if not stat.S_ISREG(found.st_mode) or _is_unfinished(path):
                continue
            room -= found.st_size
            if room < 0 or number > _MAX_CACHE_FILES:
                return
            target = kept / path
            if found.st_uid in owners and not _same(target, found):
                with _opened_below(source, entry.path, owners) as file:
                    _copy_whole(file, target)


def write_files(files: dict[str, bytes], folder: Path) -> None:
    """Write files, given as contents by relative path, below `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def ceilings_folder() -> Path:
    """Folder of what devices were measured to reach."""
    return cache_root() / "ceilings"


def checkpoint_folder() -> Path:
    """Folder of the checkpoint files that `calibrate` writes."""
    return cache_root() / "checkpoints"


def log_folder() -> Path:
    """Folder of the submissions' logs."""
    return cache_root() / "logs"


def _compilers() -> str:
    try:
        return f"tilelang-{metadata.version('tilelang')}"
    except metadata.PackageNotFoundError:
        return "tilelang-none"


def _is_unfinished(path: Path) -> bool:
    """Whether a path is of a file in the making, or of a lock whose holder has ended."""
    return _UNFINISHED in path.parts or path.name == "lock"


def _same(target: Path, found: os.stat_result) -> bool:
    try:
        kept = target.stat()
    except OSError:
        return False
    return (kept.st_size, kept.st_mtime_ns) == (found.st_size, found.st_mtime_ns)


@contextlib.contextmanager
def _opened_below(folder: Path, path: str, owners: Collection[int]) -> Iterator[BinaryIO]:
    """A regular file of these accounts below `folder`. Raises OSError where it is none.

    It is looked at once it is open: a child that was not stopped in time may put links in its way.
    """
    with open(path, "rb", opener=_open_without_following) as file:
        found = os.fstat(file.fileno())
        place = Path(f"/proc/self/fd/{file.fileno()}").readlink()
        if not (
            stat.S_ISREG(found.st_mode)
            and found.st_uid in owners
            and place.is_relative_to(folder.resolve())
        ):
            raise PermissionError(errno.EPERM, "not a file of the child's folder", path)
        yield file


def _open_without_following(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _copy_whole(source: BinaryIO, target: Path) -> None:
    """Copy a file so that no reader ever meets half of it."""
    found = os.fstat(source.fileno())
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, unfinished = tempfile.mkstemp(dir=target.parent, prefix=".unfinished-")
    try:
        with os.fdopen(descriptor, "wb") as copy:
            shutil.copyfileobj(source, copy)
        Path(unfinished).chmod(found.st_mode & 0o777)
        os.utime(unfinished, ns=(found.st_atime_ns, found.st_mtime_ns))
        Path(unfinished).replace(target)
    except OSError:
        Path(unfinished).unlink(missing_ok=True)
        raise


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
