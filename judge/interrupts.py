"""Interrupts put off while what must not be lost is on its way to where it is kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Interrupts:
    """came: whether there was one."""

    came: bool = False

    def allow(self) -> None:
        """Raises KeyboardInterrupt where one has come."""
        if self.came:
            raise KeyboardInterrupt


@contextmanager
def put_off_interrupts() -> Iterator[Interrupts]:
    """Note SIGINT and SIGTERM instead of raising for them; KeyboardInterrupt follows at the end.

    A signal mask would not do: it holds for one thread, and Python raises in the main thread
    whichever thread takes the signal. Ignored signals stay ignored. Outside the main thread, where
    nothing is ever raised, this does nothing.
    """
    interrupts = Interrupts()

    def note(number: int, frame: object) -> None:
        interrupts.came = True

    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    heeded = [n for n, handler in before.items() if handler not in (signal.SIG_IGN, None)]
    try:
        for number in heeded:
            signal.signal(number, note)
        yield interrupts
    finally:
        for number in heeded:
            signal.signal(number, before[number])
    interrupts.allow()
