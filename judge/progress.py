"""Progress on a terminal: which case, which phase; nothing where standard error is piped."""

from __future__ import annotations

from rich.console import Console
from rich.status import Status
from rich.text import Text

from judge.record import CaseResult


class TerminalProgress:
    """A status line on standard error, and a line for each finished case."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None
        self._case = ""

    def case(self, number: int, total: int, name: str) -> None:
        """Case `number` of `total` begins."""
        self._case = f"{number}/{total} {name}"
        self.phase("reference")

    def phase(self, phase: str) -> None:
        """A phase of the current case begins."""
        self.message(f"{self._case} · {phase}")

    def message(self, message: str) -> None:
        """Show a line of text until the next one."""
        if not self._console.is_terminal:
            return
        text = Text(message)
        if self._status is None:
            self._status = self._console.status(text)
            self._status.start()
        else:
            self._status.update(text)

    def done(self, result: CaseResult) -> None:
        """The current case is judged."""
        if not self._console.is_terminal:
            return
        median = f"  {result.timing.median_ms:.3f} ms" if result.timing else ""
        self._console.print(Text(f"{self._case}  {result.verdict}{median}"))

    def close(self) -> None:
        """Take the status line away."""
        if self._status is not None:
            self._status.stop()
            self._status = None
