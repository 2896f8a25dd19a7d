"""A process of the judge's own that works for another one: how it is started, told and ended."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from judge.text import plain

_ROOT = Path(__file__).resolve().parents[2]
_START = (
    "import json, os, sys; sys.path.insert(0, sys.argv[1]); "
    "cores = json.loads(sys.argv[4]); cores and os.sched_setaffinity(0, cores); "
    "from importlib import import_module; "
    "import_module(sys.argv[2]).main(int(sys.argv[3]), sys.argv[5])"
)
_END_WAIT_S = 20.0
_LOG_TAIL = 4096


class Worker:
    """The starting side. Its process ends when this one does, however that happens.

    module: whose `main(descriptor, name)` it runs. cores: to which it is pinned, with all that it
    starts; empty for this process's own. visible_devices: its CUDA_VISIBLE_DEVICES, None to leave
    it as it is. log: takes what it prints, tracebacks above all.
    """

    def __init__(
        self,
        module: str,
        name: str,
        log: Path,
        cores: Sequence[int] = (),
        visible_devices: str | None = None,
    ) -> None:
        self.name = name
        self._log = log
        environment = dict(os.environ)
        if visible_devices is not None:
            environment["CUDA_VISIBLE_DEVICES"] = visible_devices
        ours, theirs = socket.socketpair()
        with theirs, log.open("wb") as output:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-c", _START, str(_ROOT), module),
                    *(str(theirs.fileno()), json.dumps(list(cores)), name),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(theirs.fileno(),),
                env=environment,
                start_new_session=True,  # a terminal's Ctrl-C is the starting side's to tell
            )
        self.channel = Connection(ours.detach())

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def send(self, message: bytes) -> bool:
        """Send a message; whether there is anybody to take it."""
        try:
            self.channel.send_bytes(message)
        except OSError:
            return False
        return True

    def receive(self) -> list[bytes] | None:
        """The messages that have arrived; None where the process has ended and all are read."""
        messages: list[bytes] = []
        try:
            while self.channel.poll():
                messages.append(self.channel.recv_bytes())
        except (EOFError, OSError):
            return messages or None
        return messages

    def ask_to_end(self) -> None:
        """Interrupt it, and do not wait."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def end(self) -> str:
        """End it, at once where it takes too long; one line that says how it ended."""
        self.ask_to_end()
        try:
            status = self._process.wait(_END_WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        self.channel.close()
        if status < 0:
            how = f"ended by signal {signal.Signals(-status).name}"
        else:
            how = f"exit status {status}"
        lines: list[str] = []
        with contextlib.suppress(OSError):  # somebody may have cleared the logs away
            said = self._log.read_bytes()[-_LOG_TAIL:].decode(errors="replace")
            lines = said.strip().splitlines()
            if not lines:
                self._log.unlink(missing_ok=True)
        return plain(f"{how}: {lines[-1]}" if lines else how)


class Inbox:
    """The started side: messages as they arrive, read at once, so that nobody waits to send one.

    Where the starting side is gone this process and so its children are killed: nobody is left to
    take a result.
    """

    def __init__(self, descriptor: int) -> None:
        self._channel = Connection(descriptor)
        self._messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, message: bytes) -> None:
        """Send a message."""
        self._channel.send_bytes(message)

    def next(self) -> bytes:
        """The next message; waits for it."""
        return self._messages.get()

    def next_if_any(self) -> bytes | None:
        """The next message if it is here already."""
        try:
            return self._messages.get_nowait()
        except queue.Empty:
            return None

    def _read(self) -> None:
        try:
            while True:
                self._messages.put(self._channel.recv_bytes())
        except (EOFError, OSError):
            os.kill(os.getpid(), signal.SIGKILL)


def interruptible(work: Callable[[], None]) -> None:
    """Run a started side's work until the starting side ends it, which raises KeyboardInterrupt."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        work()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
