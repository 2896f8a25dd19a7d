"""What a child sees under bubblewrap: an empty file system and these few folders on top.

Everything is read-only but the child's own folder, which serves as /tmp and /dev/shm too.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from judge.home import cache_root

READABLE_VARIABLE = "GDN_JUDGE_READABLE"
"""More paths that children may read, separated as in PATH."""

_ROOT = Path(__file__).resolve().parents[2]
_JUDGE = (_ROOT / "judge", _ROOT / "reference")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/sys")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime")
_PROC = "/proc/driver/nvidia"
_COMPILERS = ("nvcc", "gcc", "g++", "cc", "c++")
_COMPILER_VARIABLES = ("CC", "CXX", "CUDAHOSTCXX", "NVCC_CCBIN")  # TileLang takes CXX, else CC
_TOOLKIT_VARIABLES = ("CUDA_HOME", "CUDA_PATH")
_PACKAGES = ("torch", "tilelang", "triton", "tvm_ffi", "numpy", "msgspec")
_TEMPORARY = ("/dev/shm", "/tmp")
_SHOW, _HIDE = "--ro-bind", "--tmpfs"
_NAMESPACES = ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts")
_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
"""What root's child needs until it has become its account; `confine` gives them up."""


@dataclass(frozen=True)
class Mounts:
    """What differs from child to child.

    folder: its own, writable, with a folder tmp in it. devices: files of /dev beyond the
    harmless ones.
    """

    folder: Path
    devices: Sequence[Path]


def bubblewrap_command(bwrap: str, mounts: Mounts, own_account: bool) -> list[str]:
    """The command line that a child's own is appended to.

    own_account: the child, started as root, changes its account by itself. Where the judge is not
    root the child lives in a user namespace under the judge's account.
    """
    arguments = [bwrap, *_NAMESPACES, "--unshare-cgroup-try", "--die-with-parent"]
    if own_account:
        for capability in _CAPABILITIES:
            arguments += ["--cap-add", capability]
    elif os.geteuid() != 0:
        arguments.append("--unshare-user")
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    arguments += ["--ro-bind-try", _PROC, _PROC]
    for device in mounts.devices:
        arguments += ["--dev-bind-try", str(device), str(device)]
    temporary = str(mounts.folder / "tmp")
    for place in _TEMPORARY:
        arguments += ["--bind", temporary, place]
    arguments += _layers(_home())
    folder = str(mounts.folder)
    arguments += _open_parents(mounts.folder, {Path("/tmp"): _SHOW})
    return [*arguments, "--bind", folder, folder, "--remount-ro", "/", "--"]


@cache
def _layers(home: Path) -> list[str]:
    """The read-only binds, each above those it lies in, and the links that lead to them."""
    real: set[Path] = set()
    links: dict[Path, str] = {}
    for path in _readable():
        links.update(_links_to(path))
        real.add(path.resolve())
    never = {Path(place) for place in ("/", *_TEMPORARY)}
    hidden = {_ROOT, cache_root(), home}
    layers: dict[Path, str] = {}
    arguments: list[str] = []
    for path in sorted((real | hidden) - never, key=lambda path: len(path.parts)):
        above = layers.get(_covering(path, layers))
        if path in hidden and above == _SHOW:
            layers[path] = _HIDE
            arguments += [_HIDE, str(path)]
        elif path not in hidden and above != _SHOW:
            layers[path] = _SHOW
            arguments += [*_open_parents(path, layers), _SHOW, str(path), str(path)]
    for link, target in links.items():
        if layers.get(_covering(link, layers)) != _SHOW:
            arguments += ["--symlink", target, str(link)]
    return arguments


def _open_parents(path: Path, layers: dict[Path, str]) -> list[str]:
    """Make the folders above a mount: those that bubblewrap makes itself are closed to others."""
    arguments = []
    for parent in reversed(path.parents[:-1]):
        if parent not in layers and layers.get(_covering(parent, layers)) != _SHOW:
            arguments += ["--dir", str(parent)]
    return arguments


def _readable() -> Iterator[Path]:
    """What Python, PyTorch, TileLang, nvcc and the C++ compiler are made of, where it exists."""
    paths = [Path(path) for path in _SYSTEM]
    paths += [Path("/etc", name) for name in _ETC]
    paths += [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable), *_JUDGE]
    paths += [path for path in _import_paths() if not _is_below(path, _ROOT)]
    listed = [os.environ.get(name, "") for name in ("LD_LIBRARY_PATH", READABLE_VARIABLE)]
    listed += [os.environ.get(name, "") for name in _TOOLKIT_VARIABLES]
    paths += [Path(entry) for value in listed for entry in value.split(os.pathsep) if entry]
    named = " ".join(os.environ.get(name, "") for name in _COMPILER_VARIABLES)
    for name in (*_COMPILERS, *named.split()):
        found = name if Path(name).is_dir() else shutil.which(name)  # NVCC_CCBIN may be a folder
        if found is not None:
            paths.append(Path(found))
            folder = Path(found).resolve().parent
            # a compiler in ~/.local/bin would show all of ~/.local, keyrings included
            if folder.name == "bin" and folder.parent.name != ".local":
                paths.append(folder.parent)
    for path in dict.fromkeys(paths):
        absolute = path.absolute()
        if absolute.exists():
            yield absolute


def _import_paths() -> Iterator[Path]:
    for entry in sys.path:
        if entry and Path(entry).exists():
            yield Path(entry)
    for name in _PACKAGES:  # installed in editable mode they lie elsewhere
        spec = importlib.util.find_spec(name)
        if spec is not None:
            yield from (Path(place) for place in spec.submodule_search_locations or ())


def _links_to(path: Path) -> dict[Path, str]:
    """The symbolic links that resolving `path` passes through, with what they hold."""
    links: dict[Path, str] = {}
    walked, rest = Path("/"), list(path.parts[1:])
    while rest and len(links) < 40:  # as many as Linux follows
        step = walked / rest.pop(0)
        if step.name == "..":
            walked = walked.parent
        elif step.is_symlink():
            target = step.readlink()
            links[step] = str(target)
            parts = list(target.parts)
            if parts and parts[0] == "/":
                walked = Path(parts.pop(0))
            rest = parts + rest
        else:
            walked = step
    return links


def _covering(path: Path, layers: dict[Path, str]) -> Path | None:
    """The layer that `path` would be seen through: the deepest one above it."""
    return next((parent for parent in path.parents if parent in layers), None)


def _is_below(path: Path, folder: Path) -> bool:
    """Whether `path` is `folder` or lies in it, both resolved."""
    return path.resolve().is_relative_to(folder.resolve())


def _home() -> Path:
    """The judge's home folder, wherever it lies; a name that is nothing where there is none."""
    try:
        return Path.home().resolve()
    except RuntimeError:
        return Path("/home")


def gpu_files(uuid: str) -> tuple[list[Path], bool]:
    """Device files of the GPU with this UUID, and whether those of other GPUs were left out.

    They are left out where the driver says which file is whose; every GPU's otherwise.
    """
    shared = [Path("/dev", name) for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "dxg")]
    shared = [path for path in (*shared, Path("/dev/nvidia-caps")) if path.exists()]
    all_gpus = [file for file in Path("/dev").glob("nvidia*") if file.name[6:].isdecimal()]
    own = Path(f"/dev/nvidia{_minor(uuid)}")  # no device's name where the driver does not say
    if len(all_gpus) > 1 and own in all_gpus:
        return [*shared, own], True
    return shared + all_gpus, False


def _minor(uuid: str) -> str:
    """The number in a GPU's file name, from the driver; empty where it does not say."""
    for information in Path("/proc/driver/nvidia/gpus").glob("*/information"):
        text = information.read_text(errors="replace")
        minor = re.search(r"Device Minor:\s*(\d+)", text)
        if uuid and uuid in text and minor:
            return minor[1]
    return ""
