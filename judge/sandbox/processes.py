"""The processes that a child consists of: finding, counting, stopping and killing them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SETTLE_S = 3.0
_PROC = Path("/proc")


@dataclass(frozen=True)
class Usage:
    """What processes take together: tasks (threads of all) and resident bytes."""

    tasks: int
    resident: int


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, daemons included."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(pids: Iterable[int]) -> set[int]:
    """These processes and all that descend from them."""
    found: set[int] = set()
    waiting = list(pids)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += children_of(pid)
    return found


def children_of(pid: int) -> list[int]:
    """The processes whose parent is `pid`, as far as they can be seen."""
    children: list[int] = []
    try:
        for task in (_PROC / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError):
                children += [int(word) for word in (task / "children").read_text().split()]
    except OSError:
        pass
    return children


def orphans(uid: int | None, known: Collection[int]) -> set[int]:
    """Processes that this one has adopted: of the account `uid`, or, without one, of a session
    of their own and not `known`; those that the judge itself starts stay in its session.
    """
    session = os.getsid(0)
    found = set()
    for pid in children_of(os.getpid()):
        with contextlib.suppress(OSError):
            if uid is not None:
                theirs = (_PROC / str(pid)).stat().st_uid == uid and pid not in known
            else:
                theirs = pid not in known and os.getsid(pid) != session
            if theirs:
                found.add(pid)
    return found


def adopted_from(session: int) -> set[int]:
    """Children of this process that belong to a session, such as that of an ended child."""
    found = set()
    for pid in children_of(os.getpid()):
        with contextlib.suppress(OSError):
            if os.getsid(pid) == session:
                found.add(pid)
    return found


def usage(pids: Iterable[int]) -> Usage:
    """Tasks and memory of processes; a page that several share counts for each of them."""
    tasks = resident = 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError, ValueError):
            # proc(5): fields 20 and 24, counted from field 3 behind the name
            fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
            tasks += int(fields[20 - 3])
            resident += int(fields[24 - 3]) * _PAGE
    return Usage(tasks, resident)


def proportional_memory(pids: Iterable[int]) -> int | None:
    """Resident bytes, with each shared page split among its users; None where it is not told."""
    total = 0
    for pid in pids:
        try:
            text = (_PROC / str(pid) / "smaps_rollup").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        except OSError:
            return None
        for line in text.splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total


def signal_all(find: Callable[[], set[int]], number: signal.Signals) -> None:
    """Send a signal to all that `find` finds, until it finds none that has not had it."""
    reached: set[int] = set()
    deadline = time.monotonic() + _SETTLE_S
    while (fresh := find() - reached) and time.monotonic() < deadline:
        for pid in fresh:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        reached |= fresh


def reap(pids: Iterable[int]) -> None:
    """Wait for adopted processes that have been killed, without blocking for long."""
    deadline = time.monotonic() + _SETTLE_S
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
                time.sleep(0.005)
