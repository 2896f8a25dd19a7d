"""Which sandbox this machine allows, found out by trying it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from judge.sandbox.accounts import Account, AccountError, take_account
from judge.sandbox.confine import Confinement, confinement_json
from judge.sandbox.view import Mounts, bubblewrap_command

MODES = ("auto", "required", "off")
SANDBOX_HELP = (
    "What contains the submission: bubblewrap where it works (auto, the default), nothing less "
    "(required), or nothing (off)."
)
BWRAP_VARIABLE = "GDN_JUDGE_BWRAP"
INSTALL = f"install bubblewrap (apt install bubblewrap) or set {BWRAP_VARIABLE} to its path"

_ROOT = Path(__file__).resolve().parents[2]
_PROBE = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from judge.sandbox.confine import confine; confine(sys.argv[2]); "
    "import json, random; open('written', 'w').close()"
)
_PROBE_LIMIT_S = 30.0


class Kind(StrEnum):
    """What stands between a child and the machine; the values stand in the record."""

    BUBBLEWRAP = "bubblewrap"
    USER = "unprivileged user"
    NONE = "none"


class SandboxError(ValueError):
    """`--sandbox required` cannot be met; the text is one line that says what to install."""


@dataclass(frozen=True)
class Sandbox:
    """How children are contained.

    bwrap: bubblewrap's path where that is the kind. own_account: each child gets an unprivileged
    account of its own, which only root can give. confined: resource limits and no new privileges;
    False only where nothing is wanted. reason: one line, why there is no more than this.
    """

    kind: Kind
    bwrap: str = ""
    own_account: bool = False
    confined: bool = True
    reason: str = ""

    @property
    def note(self) -> str:
        """The line that a reader of the report must not miss; empty where all is well."""
        if self.kind is Kind.BUBBLEWRAP:
            without = "sandboxed under the judge's account, not one of its own"
            return f"submission {without}: {self.reason}" if self.reason else ""
        return f"submission not sandboxed by bubblewrap (sandbox: {self.kind}): {self.reason}"


def isolated(sandbox: Sandbox) -> bool:
    """Whether a child has a process id namespace of its own, whose end is its processes' end."""
    return sandbox.kind is Kind.BUBBLEWRAP


def counts_own_tasks(sandbox: Sandbox) -> bool:
    """Whether the kernel counts a child's tasks apart from everybody else's, for RLIMIT_NPROC.

    It counts by account, and never root's; since Linux 5.14 by user namespace too.
    """
    if sandbox.own_account:
        return True
    release = tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])
    return isolated(sandbox) and os.geteuid() != 0 and release >= (5, 14)


OFF = Sandbox(Kind.NONE, confined=False, reason="--sandbox off")
PROFILED = Sandbox(Kind.NONE, confined=False, reason="a profiler follows the child")


def choose_sandbox(mode: str, followed_by_profiler: bool = False) -> Sandbox:
    """The sandbox for `--sandbox` auto, required or off; what is there is tried once a process.

    Raises SandboxError where bubblewrap is required and cannot be had.
    """
    if mode == "off":
        return OFF
    if followed_by_profiler:
        if mode == "required":
            raise SandboxError("--sandbox required: a profiler cannot follow into it; use auto")
        return PROFILED
    named = os.environ.get(BWRAP_VARIABLE, "")
    sandbox, missing = _bubblewrap(named)
    if sandbox is not None:
        return sandbox
    if mode == "required":
        raise SandboxError(f"--sandbox required: {missing}")
    return _without_bubblewrap(missing)


@cache
def _bubblewrap(named: str) -> tuple[Sandbox | None, str]:
    """Bubblewrap, or why it cannot be had. named: what BWRAP_VARIABLE holds."""
    bwrap = shutil.which(named or "bwrap")
    if bwrap is None:
        where = f"no program {named}" if named else "bubblewrap is not installed"
        return None, f"{where}; {INSTALL}"
    problem = ""
    for own_account in (True, False) if os.geteuid() == 0 else (False,):
        path = str(Path(bwrap).absolute())
        sandbox = Sandbox(Kind.BUBBLEWRAP, path, own_account, reason=problem)
        problem = _problem(sandbox)
        if not problem:
            return sandbox, ""
    return None, f"{bwrap} does not work here ({problem}); allow it to make namespaces"


@cache
def _without_bubblewrap(missing: str) -> Sandbox:
    """An account of its own for each child where the judge is root, else nothing but limits."""
    if os.geteuid() != 0:
        return Sandbox(Kind.NONE, reason=missing)
    sandbox = Sandbox(Kind.USER, own_account=True, reason=missing)
    problem = _problem(sandbox)
    if not problem:
        return sandbox
    return Sandbox(Kind.NONE, reason=f"{missing}; another account does not work: {problem}")


def _problem(sandbox: Sandbox) -> str:
    """Run a small Python in the sandbox; one line that says what goes wrong, or nothing."""
    account: Account | None = None
    folder = Path(tempfile.mkdtemp(prefix="gdn-judge-probe-"))
    try:
        (folder / "tmp").mkdir()
        if sandbox.own_account:
            account = take_account()
            os.chown(folder, account.uid, account.uid)
        prefix = []
        if sandbox.kind is Kind.BUBBLEWRAP:
            prefix = bubblewrap_command(sandbox.bwrap, Mounts(folder, []), sandbox.own_account)
        confinement = confinement_json(Confinement(uid=account.uid if account else None))
        done = subprocess.run(
            [*prefix, sys.executable, "-P", "-c", _PROBE, str(_ROOT), confinement],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PROBE_LIMIT_S,
            check=False,
        )
    except (OSError, AccountError, subprocess.SubprocessError) as error:
        return str(error)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if account is not None:
            account.release()
    if done.returncode == 0:
        return ""
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit status {done.returncode}"
