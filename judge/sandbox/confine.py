"""The first thing a child does: give up what it must not have. Runs before any foreign code."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
from pathlib import Path

import msgspec

_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 63
_OOM_SCORE = "900"


class Confinement(msgspec.Struct, frozen=True):
    """What a child gives up; it travels as JSON on its command line.

    confined: False leaves everything as it is. uid: account (and group) to become, None to stay.
    tasks: RLIMIT_NPROC, None where the count would include processes that are not the child's.
    cpu_s, open_files, file_bytes: limits of each process; None leaves one as it is.
    """

    confined: bool = True
    uid: int | None = None
    tasks: int | None = None
    cpu_s: int | None = None
    open_files: int | None = None
    file_bytes: int | None = None


def confinement_json(confinement: Confinement) -> str:
    """What `confine` reads."""
    return msgspec.json.encode(confinement).decode()


def confine(text: str) -> None:
    """Set the limits, become the account, and lose every capability and the way back to one.

    Raises OSError, which ends the child before it has loaded anything.
    """
    wanted = msgspec.json.decode(text, type=Confinement)
    with contextlib.suppress(OSError):  # where the machine's memory runs out this one goes first
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
    if not wanted.confined:
        return
    os.umask(0o077)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NPROC, wanted.tasks)
    _limit(resource.RLIMIT_CPU, wanted.cpu_s)
    _limit(resource.RLIMIT_NOFILE, wanted.open_files)
    _limit(resource.RLIMIT_FSIZE, wanted.file_bytes)
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(_LAST_CAPABILITY + 1):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # refused without CAP_SETPCAP: no loss
    if wanted.uid is not None:
        os.setgroups([])
        os.setresgid(wanted.uid, wanted.uid, wanted.uid)
        os.setresuid(wanted.uid, wanted.uid, wanted.uid)
        # Another account makes /proc/self root's own, which CUDA and debuggers trip over.
        libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    _drop_capabilities(libc)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS)")


def _limit(what: int, value: int | None) -> None:
    if value is None:
        return
    _, hard = resource.getrlimit(what)
    allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(what, (allowed, allowed))


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Clear the effective, permitted and inheritable sets (capset(2), version 3: 2 × 3 words)."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    if libc.capset(header, nothing) != 0:
        raise OSError(ctypes.get_errno(), "capset")
