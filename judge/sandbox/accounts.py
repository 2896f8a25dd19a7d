"""Unprivileged accounts, one for each live child of a judge that runs as root."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path

FIRST_UID = 60706
LAST_UID = 61183
"""Numbers that neither Debian nor systemd gives to anybody (systemd.io/UIDS-GIDS)."""

_FOLDER = Path("/run/gdn-judge")
_LEFTOVERS = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))
_KILL_LIMIT_S = 30.0


class AccountError(OSError):
    """No account is to be had; the text is one line."""


@dataclass
class Account:
    """A user and group number that no other live child of this machine's judges has."""

    uid: int
    _lock: int

    def end_processes(self) -> None:
        """Kill whatever runs under this account, in one step that no fork can outrun."""
        # The shell becomes the account first; kill -1 then means all that it may signal.
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                ["/bin/sh", "-c", "kill -KILL -1"],
                user=self.uid,
                group=self.uid,
                extra_groups=[],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_KILL_LIMIT_S,
                check=False,
            )

    def leftovers(self) -> list[Path]:
        """What the account has left in the folders that everybody may write to."""
        found = []
        for folder in _LEFTOVERS:
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                found += [Path(entry) for entry in entries if self._owns(entry)]
        return found

    def release(self) -> None:
        """Let another child have the account."""
        os.close(self._lock)

    def _owns(self, entry: os.DirEntry[str]) -> bool:
        try:
            return entry.stat(follow_symlinks=False).st_uid == self.uid
        except OSError:
            return False


def take_account() -> Account:
    """An account that is free. Only root can use one. Raises AccountError."""
    try:
        _FOLDER.mkdir(mode=0o700, exist_ok=True)
        for uid in range(FIRST_UID, LAST_UID + 1):
            if _is_known(uid):
                continue
            lock = os.open(_FOLDER / f"{uid}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            return Account(uid, lock)
    except OSError as error:
        raise AccountError(f"{_FOLDER}: {error.strerror}") from None
    raise AccountError(f"all accounts from {FIRST_UID} to {LAST_UID} are taken")


def _is_known(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True
