"""What a hostile submission would try, each attempt with what came of it.

A copy lies beside the submission, which imports it; nothing here needs the judge. The test says
what there is to get: paths, addresses and process ids of its own run.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

_PTRACE_ATTACH = 16


def findings(targets: dict) -> dict[str, object]:
    """Every attempt's outcome by name: what was got, or the name of the exception."""
    attempts: dict[str, Callable[[], object]] = {
        "read": lambda: [path for path in targets["read"] if _reads(path)],
        "write": lambda: [path for path in targets["write"] if _writes(path)],
        "tcp": lambda: _connects(socket.AF_INET, ("127.0.0.1", targets["port"])),
        "abstract": lambda: _connects(socket.AF_UNIX, "\0" + targets["abstract"]),
        "sees_judge": lambda: any(b"pytest" in command for command in _commands()),
        "kill": lambda: os.kill(targets["judge"], 9),
        "ptrace": lambda: _ptrace(targets["judge"]),
        "root": lambda: (os.getuid() != 0 and os.setuid(0)) or os.getuid(),
        "uid": os.getuid,
        "capabilities": lambda: _status("CapEff"),
        "no_new_privileges": lambda: _status("NoNewPrivs"),
        "stdin": sys.stdin.read,
        "secrets": lambda: [name for name in os.environ if name.startswith("PROBE_")],
        "home": lambda: Path.home().samefile(Path.cwd()),
        "gpus": lambda: [str(path) for path in Path("/dev").glob("nvidia*")],
        "shared": lambda: [_writes(path) for path in targets["shared"]],
        "open_files": _open_many,
        "file": lambda: _grow(5 << 30),
        "limits": lambda: [
            resource.getrlimit(what)[1] for what in (resource.RLIMIT_CPU, resource.RLIMIT_CORE)
        ],
        "daemon": lambda: _start_daemon(targets["daemon_seconds"]),
    }
    return {name: _outcome(attempt) for name, attempt in attempts.items()}


def _outcome(attempt: Callable[[], object]) -> object:
    try:
        return attempt()
    except BaseException as error:
        return type(error).__name__


def _reads(path: str) -> bool:
    try:
        place = Path(path)
        return any(place.iterdir()) if place.is_dir() else bool(place.read_bytes())
    except OSError:
        return False


def _writes(path: str) -> bool:
    try:
        Path(path).write_text("hostile")
    except OSError:
        return False
    return True


def _commands() -> list[bytes]:
    return [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]


def _connects(family: int, address: object) -> bool:
    with socket.socket(family) as client:
        client.settimeout(2)
        try:
            client.connect(address)
        except OSError:
            return False
    return True


def _ptrace(pid: int) -> int:
    return ctypes.CDLL(None).ptrace(_PTRACE_ATTACH, pid, None, None)


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value, 16)
    raise KeyError(field)


def _open_many() -> int:
    with contextlib.ExitStack() as files:
        for count in range(100_000):
            try:
                files.enter_context(Path("/dev/null").open())
            except OSError:
                return count
    return 100_000


def _grow(size: int) -> bool:
    with Path("large").open("wb") as file:
        file.truncate(size)
    return True


def _start_daemon(seconds: int) -> bool:
    """Leave session and parent behind, twice removed."""
    first = os.fork()
    if first == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            os.execvp("sleep", ["sleep", str(seconds)])
        os._exit(0)
    os.waitpid(first, 0)
    subprocess.Popen(["sleep", str(seconds)], start_new_session=True)
    return True


def report(targets: dict) -> None:
    """Print the findings on one line."""
    print("FINDINGS " + json.dumps(findings(targets)), flush=True)
