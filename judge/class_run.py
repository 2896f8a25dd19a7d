"""From a folder of uploads to a store of records: read, passed on to lanes, each kept at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol as Interface

from judge.bench import Plan
from judge.engines.compile_ahead import Compiled, CompileStage
from judge.engines.engine import AtCase, AtPhase, Began, Died, Engine, Event, Finished, Said, Task
from judge.fingerprint import content_digest, settings_key
from judge.interrupts import Interrupts, put_off_interrupts
from judge.record import Record
from judge.roster import Participant
from judge.rules import scan_source
from judge.run_log import RunLog
from judge.sources import Source
from judge.store.schema import StoreError, StoreFullError
from judge.store.store import MAKE_ROOM, Store
from judge.submission import Submission, SubmissionError
from judge.text import plain
from judge.uploads import Place, Upload, read_upload
from judge.verdict import Rules

TRIES = 2
"""How often a submission is measured whose lane ends under it."""

_BUSY_WAIT_S = 0.1
_IDLE_WAIT_S = 1.0


class State(StrEnum):
    """What became of one upload in a run."""

    GRADED = "graded"
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    FAILED = "not graded"


@dataclass(frozen=True)
class Outcome:
    """One upload of a run.

    record: where it was graded. problem: one line, why an upload is refused or the judge failed.
    remarks: lines about what does not stop grading.
    """

    place: Place
    state: State
    record: Record | None = None
    problem: str = ""
    remarks: tuple[str, ...] = ()


class ClassProgress(Interface):
    """What a run tells whoever watches it."""

    def expects(self, total: int) -> None:
        """How many uploads there are, as far as is known."""

    def compiling(self, places: list[Place]) -> None:
        """Of which uploads the kernels are being compiled, or wait for that."""

    def began(self, lane: str, place: Place) -> None:
        """A lane takes up an upload."""

    def case(self, lane: str, number: int, total: int, name: str) -> None:
        """Case `number` of `total` of a lane's upload begins."""

    def phase(self, lane: str, phase: str) -> None:
        """A phase of that case begins."""

    def said(self, lane: str, text: str) -> None:
        """What a lane waits for, or why it is not to be had."""

    def finished(self, number: int, total: int, outcome: Outcome) -> None:
        """What became of an upload, the `number`th to be done with; all of it is in the store."""


@dataclass(frozen=True)
class Ended:
    """How a run ended. outcomes: of the uploads that it reached. lost: why no lane is left."""

    outcomes: list[Outcome]
    interrupted: bool
    lost: str


@dataclass(frozen=True)
class ClassRun:
    """All that a run works with.

    roster: by id, None where there is none. stage: where kernels are compiled first, None where
    they are not. fresh: whether to grade what is unchanged again. whole: whether the uploads are
    all there are, in their order, which says which is the latest.
    """

    plan: Plan
    engine: Engine
    stage: CompileStage | None
    store: Store
    roster: Mapping[str, Participant] | None
    progress: ClassProgress
    log: RunLog
    fresh: bool
    whole: bool = True


def grade_class(run: ClassRun, source: Source) -> Ended:
    """Grade every upload of the source; what is in the store already is passed over.

    What one upload does stops no other one, and a lane that ends is replaced. A device that answers
    no more ends its lane, and its submission is measured once more by another one. A submission
    that loses a device again, or the last one, counts as graded, lest it be the first one again
    next time; the run ends with the last lane. An interrupt drops what is under way and nothing
    else. Engine and stage are closed. Raises StoreError.
    """
    conductor = _Conductor(run, source)
    interrupted = False
    try:
        with put_off_interrupts() as interrupts:
            conductor.conduct(interrupts)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        run.engine.close()
        if run.stage is not None:
            run.stage.close()
        run.log.write("end", interrupted=interrupted)
    return Ended(conductor.outcomes, interrupted, conductor.lost)


@dataclass
class _Turn:
    """An upload on its way. tries: how often a lane has ended under it, its device lost or not."""

    number: int
    place: Place
    participant: str
    submission: Submission
    content: str
    remarks: tuple[str, ...]
    compile_errors: dict[str, str] = field(default_factory=dict)
    lane: str = ""
    tries: int = 0
    times: dict[str, float] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """What no two turns at a time are graded for."""
        return self.participant, self.content


class _Conductor:
    """Moves uploads from the source through compile stage and lanes to the store."""

    def __init__(self, run: ClassRun, source: Source) -> None:
        self.outcomes: list[Outcome] = []
        self.lost = ""
        self._run = run
        self._source = source
        self._settings = settings_key(run.plan)
        self._turns: dict[int, _Turn] = {}
        self._compiling: dict[int, _Turn] = {}
        self._ready: deque[_Turn] = deque()
        self._twins: dict[tuple[str, str], list[_Turn]] = {}
        self._count = 0

    def conduct(self, interrupts: Interrupts) -> None:
        """Until all is done, no lane is left or the disk is full.

        An interrupt is heeded where no event is in hand, so that it loses nothing finished.
        """
        run = self._run
        run.progress.expects(self._source.total)
        while not self.lost:
            self._take_in(interrupts)
            self._hand_out()
            if not self._turns and self._source.ended():
                return
            busy = bool(self._compiling) or not self._source.ended()
            for event in run.engine.wait(_BUSY_WAIT_S if busy else _IDLE_WAIT_S):
                self._handle(event)
            interrupts.allow()
            for compiled in run.stage.poll() if run.stage is not None else ():
                self._compiled(compiled)
            if not run.engine.lanes():
                self.lost = self.lost or "no lane is left"

    def _take_in(self, interrupts: Interrupts) -> None:
        """Read uploads while fewer are on their way than lanes and compile stage need."""
        stage = self._run.stage
        enough = 2 * (len(self._run.engine.lanes()) + (stage.workers if stage else 0)) + 1
        while self._under_way() < enough and (place := self._take()) is not None:
            self._run.progress.expects(self._source.total)
            interrupts.allow()
            try:
                self._read(place)
            except StoreError:
                raise
            except Exception as error:
                problem = plain(f"the judge failed: {type(error).__name__}: {error}")
                self._finish(Outcome(place, State.FAILED, problem=problem))

    def _under_way(self) -> int:
        """How many turns are no mere twins of others, which keep nobody busy."""
        return len(self._turns) - sum(len(twins) for twins in self._twins.values())

    def _take(self) -> Place | None:
        """The next upload; None where the source has none, or says why it cannot be reached."""
        try:
            return self._source.take()
        except SubmissionError as error:
            problem = f"{error}; looked at again and again"
        except Exception as error:
            problem = f"the judge failed: {type(error).__name__}: {error}"
        self._run.progress.said("uploads", plain(problem))
        return None

    def _read(self, place: Place) -> None:
        run = self._run
        participant = Participant(place.participant)
        upload = read_upload(place)
        remarks = _remarks(upload)
        if run.roster is not None:
            participant = run.roster.get(place.participant, participant)
            remarks += () if place.participant in run.roster else ("not on the roster",)
        if upload.submission is None:
            run.store.see(upload, participant, "", latest=run.whole)
            self._finish(Outcome(place, State.REFUSED, problem=upload.problem, remarks=remarks))
            return
        content = content_digest(upload.submission)
        run.store.see(upload, participant, content, latest=run.whole)
        if not run.fresh and run.store.has(participant.id, content, self._settings):
            self._finish(Outcome(place, State.UNCHANGED, remarks=remarks))
            return
        self._count += 1
        turn = _Turn(self._count, place, participant.id, upload.submission, content, remarks)
        turn.times["read"] = run.log.now()
        self._turns[turn.number] = turn
        if turn.key in self._twins and not run.fresh:
            self._twins[turn.key].append(turn)  # unchanged, if the first one is graded
            return
        self._twins.setdefault(turn.key, [])
        self._start(turn)

    def _start(self, turn: _Turn) -> None:
        """Have its kernels compiled where there are any, else let a lane have it."""
        stage = self._run.stage
        if stage is None or scan_source(turn.submission)[0] is Rules.NO_TILELANG:
            self._ready.append(turn)
            return
        self._compiling[turn.number] = turn
        stage.submit(turn.number, turn.submission)
        self._tell_compiling()

    def _compiled(self, compiled: Compiled) -> None:
        turn = self._compiling.pop(compiled.number)
        turn.compile_errors = compiled.errors
        turn.times |= {"compiled": self._run.log.now(), "compile_s": compiled.seconds}
        self._ready.append(turn)
        self._tell_compiling()

    def _tell_compiling(self) -> None:
        self._run.progress.compiling([turn.place for turn in self._compiling.values()])

    def _hand_out(self) -> None:
        while self._ready and self._run.engine.room():
            turn = self._ready.popleft()
            self._run.engine.submit(Task(turn.number, turn.submission, turn.compile_errors))

    def _handle(self, event: Event) -> None:
        progress = self._run.progress
        match event:
            case Said():
                progress.said(event.lane, event.text)
            case Began():
                turn = self._turns[event.task]
                turn.lane = event.lane
                turn.times["began"] = self._run.log.now()
                progress.began(event.lane, turn.place)
            case AtCase():
                lane = self._turns[event.task].lane
                progress.case(lane, event.number, event.total, event.name)
            case AtPhase():
                progress.phase(self._turns[event.task].lane, event.phase)
            case Died():
                self._died(self._turns[event.task], event)
            case Finished():
                self._measured(self._turns[event.task], event)

    def _died(self, turn: _Turn, event: Died) -> None:
        turn.tries += 1
        if turn.tries < TRIES:
            self._ready.appendleft(turn)
            return
        del self._turns[turn.number]
        problem = f"{event.reason}; tried {turn.tries} times"
        self._close(turn, Outcome(turn.place, State.FAILED, None, problem, turn.remarks))

    def _measured(self, turn: _Turn, event: Finished) -> None:
        record = event.record
        turn.times |= {"finished": self._run.log.now(), "lane_s": event.seconds}
        if event.lost and self._lost_device(turn, event):
            self._ready.appendleft(turn)
            return
        del self._turns[turn.number]
        if record is None:
            outcome = Outcome(turn.place, State.FAILED, None, event.problem, turn.remarks)
        else:
            self._run.store.add(turn.participant, turn.content, self._settings, record)
            outcome = Outcome(turn.place, State.GRADED, record, "", turn.remarks)
        self._close(turn, outcome)
        if self._run.store.full:
            raise StoreFullError(f"the store's disk is full; {MAKE_ROOM}")

    def _lost_device(self, turn: _Turn, event: Finished) -> bool:
        """Tell which lane is gone; whether another one measures its submission once more."""
        turn.tries += 1
        left = bool(self._run.engine.lanes())
        again = left and turn.tries < TRIES
        whose = f"{turn.place.participant} is measured once more by another" if again else ""
        text = f"this lane is gone: {event.lost}"
        self._run.progress.said(event.lane, "; ".join(part for part in (text, whose) if part))
        self.lost = "" if left else event.lost
        return again

    def _close(self, turn: _Turn, outcome: Outcome) -> None:
        """Tell what became of it, and of those that are the same."""
        self._finish(outcome, turn)
        twins = self._twins.pop(turn.key, [])
        if outcome.state is State.GRADED:
            for twin in twins:
                del self._turns[twin.number]
                self._finish(Outcome(twin.place, State.UNCHANGED, remarks=twin.remarks))
        elif twins:
            self._twins[turn.key] = twins[1:]
            self._start(twins[0])

    def _finish(self, outcome: Outcome, turn: _Turn | None = None) -> None:
        self.outcomes.append(outcome)
        values: dict[str, object] = {
            "participant": outcome.place.participant,
            "label": outcome.place.label,
            "state": outcome.state.value,
        }
        if turn is not None:
            values |= {"lane": turn.lane, "lane_deaths": turn.tries, **turn.times}
        if outcome.record is not None:
            values["phases"] = _phases(outcome.record)
        self._run.log.write("upload", **values)
        total = max(self._source.total, len(self.outcomes))
        self._run.progress.finished(len(self.outcomes), total, outcome)


def _phases(record: Record) -> dict[str, float]:
    """Seconds of all cases by phase."""
    total: dict[str, float] = {}
    for result in record.results:
        for phase, seconds in result.seconds.items():
            total[phase] = round(total.get(phase, 0.0) + seconds, 6)
    return total


def _remarks(upload: Upload) -> tuple[str, ...]:
    return (upload.card.problem,) if upload.card.problem else ()
