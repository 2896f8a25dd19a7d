"""Progress of a class: a bar on a terminal, a plain line per submission where it is piped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from judge.class_run import Outcome
from judge.text import plain
from judge.uploads import Place
from judge.views.class_lines import outcome_line, place_name

_MOST_NAMES = 3


class _Rate(ProgressColumn):
    """Submissions a minute."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed * 60:.1f}/min" if task.speed else "–/min", style="dim")


class ClassTerminal:
    """A bar on standard error where that is a terminal; finished uploads as lines of their own.

    Below the bar stand a line for each lane and one for what is being compiled. line: takes the
    plain line of a finished upload, which goes to the bar's own console where None. say: takes what
    a lane says where there is no terminal.
    """

    def __init__(
        self,
        console: Console,
        total: int,
        line: Callable[[str], None] | None,
        say: Callable[[str], None],
    ) -> None:
        self._line = line
        self._say = say
        self._console = console
        self._lanes: dict[str, _AtWork] = {}
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
        self._rows = Progress(
            TextColumn("  {task.description}", markup=False),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=total)
        self._compile_row: TaskID | None = None
        self._live = Live(
            Group(self._bar, self._rows), console=console, auto_refresh=console.is_terminal
        )
        if console.is_terminal:
            self._live.start()

    def expects(self, total: int) -> None:
        """How many uploads there are, as far as is known."""
        self._bar.update(self._task, total=total)

    def compiling(self, places: list[Place]) -> None:
        """Of which uploads the kernels are being compiled, or wait for that."""
        names = ", ".join(place_name(place) for place in places[:_MOST_NAMES])
        more = f" and {len(places) - _MOST_NAMES} more" if len(places) > _MOST_NAMES else ""
        if self._compile_row is None:
            self._compile_row = self._rows.add_task("")
        text = f"compiling · {names}{more}" if places else ""
        self._rows.update(self._compile_row, description=text, visible=bool(places))

    def began(self, lane: str, place: Place) -> None:
        """A lane takes up an upload."""
        row = self._lanes[lane].row if lane in self._lanes else self._rows.add_task("")
        self._lanes[lane] = _AtWork(row, place_name(place))
        self._show(lane)

    def case(self, lane: str, number: int, total: int, name: str) -> None:
        """Case `number` of `total` of a lane's upload begins."""
        self._lanes[lane].case = f"{number}/{total} {name}"

    def phase(self, lane: str, phase: str) -> None:
        """A phase of that case begins."""
        self._lanes[lane].phase = phase
        self._show(lane)

    def said(self, lane: str, text: str) -> None:
        """What a lane waits for, or why it is not to be had."""
        line = plain(f"{lane}: {text}", 300)
        if self._console.is_terminal:
            self._console.print(Text(line))
        else:
            self._say(line)

    def message(self, message: str) -> None:
        """Show a line of text beside the bar until the next one."""
        self._bar.update(self._task, description=message)

    def finished(self, number: int, total: int, outcome: Outcome) -> None:
        """What became of an upload."""
        line = outcome_line(number, total, outcome)
        if self._line is not None:
            self._line(line)
        else:
            self._console.print(Text(line))
        self._bar.update(self._task, total=total, completed=number)

    def close(self) -> None:
        """Take the bar away."""
        if self._console.is_terminal:
            self._live.stop()

    def _show(self, lane: str) -> None:
        at = self._lanes[lane]
        shown = " · ".join(part for part in (lane, at.name, at.case, at.phase) if part)
        self._rows.update(at.row, description=shown)


@dataclass
class _AtWork:
    """A lane's row and what stands in it."""

    row: TaskID
    name: str
    case: str = ""
    phase: str = ""
