"""A compile worker that answers at once, but for submissions named "hanging" and "stubborn".

It imports little, lest starting it take longer than the limit under test.
"""

from __future__ import annotations

import signal
import time

import msgspec

from judge.engines.process import Inbox, interruptible


def main(descriptor: int, name: str) -> None:
    """Serve until interrupted."""
    inbox = Inbox(descriptor)
    interruptible(lambda: _serve(inbox))


def _serve(inbox: Inbox) -> None:
    inbox.next()
    while True:
        task = msgspec.msgpack.decode(inbox.next())
        name = task["submission"]["name"]
        if name == "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if name != "right":
            time.sleep(999)
        compiled = {"number": task["number"], "errors": {"case": "an error"}, "seconds": 1.0}
        inbox.send(msgspec.msgpack.encode(compiled))
