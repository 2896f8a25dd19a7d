"""Progress of a class: a bar on a terminal, a plain line per submission where it is piped."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from judge.class_run import Outcome
from judge.record import CaseResult
from judge.uploads import Place
from judge.views.class_lines import outcome_line, place_name


class _Rate(ProgressColumn):
    """Submissions a minute."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed * 60:.1f}/min" if task.speed else "–/min", style="dim")


class ClassTerminal:
    """A bar on standard error where that is a terminal; finished uploads as lines of their own.

    line: takes the plain line of a finished upload, which goes to the bar's own console where None.
    """

    def __init__(self, console: Console, total: int, line: Callable[[str], None] | None) -> None:
        self._line = line
        self._running = ""
        self._case = ""
        self._bar = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=total)
        self._bar.start()

    def submission(self, number: int, total: int, place: Place) -> None:
        """Upload `number` of `total` begins."""
        self._running = place_name(place)
        self.message(self._running)

    def case(self, number: int, total: int, name: str) -> None:
        """Case `number` of `total` begins."""
        self._case = f"{number}/{total} {name}"

    def phase(self, phase: str) -> None:
        """A phase of the current case begins."""
        self.message(f"{self._running} · {self._case} · {phase}")

    def done(self, result: CaseResult) -> None:
        """The current case is judged."""

    def message(self, message: str) -> None:
        """Show a line of text beside the bar until the next one."""
        self._bar.update(self._task, description=message)

    def finished(self, number: int, total: int, outcome: Outcome) -> None:
        """What became of an upload."""
        line = outcome_line(number, total, outcome)
        if self._line is not None:
            self._line(line)
        else:
            self._bar.console.print(Text(line))
        self._bar.advance(self._task)

    def close(self) -> None:
        """Take the bar away."""
        self._bar.stop()
