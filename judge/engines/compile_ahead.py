"""A pool of processes that compile submissions' kernels before a lane gets them; no GPU needed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from judge.bench import log_path
from judge.case import Case
from judge.engines.process import Worker
from judge.profiles import DeviceProfile
from judge.sandbox.kinds import Sandbox
from judge.submission import Submission

LIMIT_S = 1800.0
"""What one submission may take of a worker in all."""

_MODULE = "judge.engines.compile_main"
_END_WAIT_S = 30.0


class CompileSetup(msgspec.Struct, frozen=True):
    """What every worker of the pool is given once. cases: with their suite's name."""

    cases: list[tuple[str, Case]]
    profile: DeviceProfile
    sandbox: Sandbox


class CompileTask(msgspec.Struct, frozen=True):
    """A submission whose kernels to compile into its cache."""

    number: int
    submission: Submission


class Compiled(msgspec.Struct, frozen=True):
    """errors: one line for each case, by name, whose kernels do not compile."""

    number: int
    errors: dict[str, str]
    seconds: float


@dataclass
class _Place:
    """One worker of the pool and what it is at.

    due: when that must be done (time.monotonic). asked: whether it was asked to end, being late.
    """

    cores: tuple[int, ...]
    worker: Worker | None = None
    task: CompileTask | None = None
    due: float = 0.0
    asked: bool = False


@dataclass
class CompileStage:
    """Compiles submissions in the order in which they were submitted. Used by one thread.

    cores: of each worker, to which it is pinned; empty for a worker that may use all of them.
    limit_s: what one submission may take; its worker is then ended, and the lane compiles the rest.
    """

    setup: CompileSetup
    cores: Sequence[tuple[int, ...]]
    limit_s: float = LIMIT_S
    _waiting: deque[CompileTask] = field(default_factory=deque)
    _passed_over: list[Compiled] = field(default_factory=list)
    _places: list[_Place] = field(init=False)

    def __post_init__(self) -> None:
        self._places = [_Place(cores) for cores in self.cores]

    @property
    def workers(self) -> int:
        """How many submissions are compiled at a time."""
        return len(self._places)

    def submit(self, number: int, submission: Submission) -> None:
        """Have a submission's kernels compiled."""
        self._waiting.append(CompileTask(number, submission))
        self._hand_out()

    def poll(self) -> list[Compiled]:
        """What is done since it was asked last. A worker that dies or is ended found no error."""
        done, self._passed_over = self._passed_over, []
        for place in self._places:
            if place.worker is None:
                continue
            messages = place.worker.receive()
            if messages == [] and self._overdue(place):
                messages = None
            if messages is None:
                place.worker.end()
                place.worker = None
                if place.task is not None:
                    done.append(Compiled(place.task.number, {}, 0.0))
                    place.task = None
            for message in messages or ():
                done.append(msgspec.msgpack.decode(message, type=Compiled))
                place.task = None
        self._hand_out()
        return done

    def close(self) -> None:
        """End the workers; what they are at is dropped."""
        running = [place for place in self._places if place.worker is not None]
        for place in running:
            place.worker.ask_to_end()
        for place in running:
            place.worker.end()
            place.worker = None

    def _overdue(self, place: _Place) -> bool:
        """Ask a worker to end that takes too long; whether it has not, though it had time to."""
        late_s = time.monotonic() - place.due
        if place.task is None or late_s < 0:
            return False
        if not place.asked:
            place.asked = True
            place.worker.ask_to_end()
        return late_s > _END_WAIT_S

    def _hand_out(self) -> None:
        for index, place in enumerate(self._places, start=1):
            if not self._waiting or place.task is not None:
                continue
            task = self._waiting.popleft()
            if place.worker is None and not self._started(place, f"compile-{index}"):
                self._passed_over.append(Compiled(task.number, {}, 0.0))
                continue
            place.task, place.due = task, time.monotonic() + self.limit_s
            place.worker.send(msgspec.msgpack.encode(task))

    def _started(self, place: _Place, name: str) -> bool:
        """Start a worker; where that fails, on a full disk say, its task is passed over."""
        log = log_path(datetime.now(UTC), name)
        try:
            place.worker = Worker(_MODULE, name, log, place.cores, visible_devices="")
        except OSError:
            return False
        place.asked = False
        place.worker.send(msgspec.msgpack.encode(self.setup))
        return True
