"""A worker that says who it is and then waits for messages, which it does nothing with."""

from __future__ import annotations

import os

from judge.engines.process import Inbox, interruptible


def main(descriptor: int, name: str) -> None:
    """Serve until interrupted."""
    inbox = Inbox(descriptor)
    interruptible(lambda: _serve(inbox, name))


def _serve(inbox: Inbox, name: str) -> None:
    inbox.send(f"{name} on {len(os.sched_getaffinity(0))} cores".encode())
    while True:
        inbox.next()
