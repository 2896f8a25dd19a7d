"""From a folder of uploads to a store of records: one submission at a time, each kept at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol as Interface

from judge.bench import Bench, Plan, Progress
from judge.fingerprint import content_digest, settings_key
from judge.grading import grade
from judge.record import Record
from judge.roster import Participant
from judge.store.schema import StoreError, StoreFullError
from judge.store.store import MAKE_ROOM, Store
from judge.text import plain
from judge.uploads import Place, Upload, read_upload


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


class ClassProgress(Progress, Interface):
    """What a run tells whoever watches it."""

    def submission(self, number: int, total: int, place: Place) -> None:
        """Upload `number` of `total` begins."""

    def finished(self, number: int, total: int, outcome: Outcome) -> None:
        """What became of it, all of which is in the store."""


@dataclass(frozen=True)
class Ended:
    """How a run ended. outcomes: of the uploads that it reached. lost: why the device is gone."""

    outcomes: list[Outcome]
    interrupted: bool
    lost: str


def grade_class(
    plan: Plan,
    places: Sequence[Place],
    roster: Mapping[str, Participant] | None,
    store: Store,
    progress: ClassProgress,
    *,
    fresh: bool,
    whole: bool = True,
) -> Ended:
    """Grade every upload under one plan; what is in the store already is passed over.

    roster: by id, None where there is none. fresh: whether to grade what is unchanged again.
    whole: whether the places are all there are, in their order, which says which is the latest.
    What one upload does stops no other one; only a device that answers no more ends the run, with
    the submission that lost it counted as graded, lest it be the first one again next time. An
    interrupt drops the submission under way and nothing else. Raises StoreError.
    """
    outcomes: list[Outcome] = []
    interrupted = False
    bench = Bench(plan, progress)
    try:
        for number, place in enumerate(places, start=1):
            progress.submission(number, len(places), place)
            try:
                outcome = _Turn(plan, bench, store, progress, fresh, whole).take(place, roster)
            except KeyboardInterrupt:
                interrupted = True
                break
            outcomes.append(outcome)
            progress.finished(number, len(places), outcome)
            if store.full:
                raise StoreFullError(f"the store's disk is full; {MAKE_ROOM}")
            if bench.lost:
                break
    finally:
        bench.close()
    return Ended(outcomes, interrupted, bench.lost)


@dataclass(frozen=True)
class _Turn:
    """The judging of one upload."""

    plan: Plan
    bench: Bench
    store: Store
    progress: ClassProgress
    fresh: bool
    whole: bool

    def take(self, place: Place, roster: Mapping[str, Participant] | None) -> Outcome:
        try:
            return self._take(place, roster)
        except StoreError:
            raise
        except Exception as error:
            problem = plain(f"the judge failed: {type(error).__name__}: {error}")
            self.bench.drop_children()
            return Outcome(place, State.FAILED, problem=problem)

    def _take(self, place: Place, roster: Mapping[str, Participant] | None) -> Outcome:
        participant = Participant(place.participant)
        upload = read_upload(place)
        remarks = _remarks(upload)
        if roster is not None:
            participant = roster.get(place.participant, participant)
            remarks += () if place.participant in roster else ("not on the roster",)
        if upload.submission is None:
            self.store.see(upload, participant, "", latest=self.whole)
            return Outcome(place, State.REFUSED, problem=upload.problem, remarks=remarks)
        content = content_digest(upload.submission)
        settings = settings_key(self.plan)
        self.store.see(upload, participant, content, latest=self.whole)
        if not self.fresh and self.store.has(participant.id, content, settings):
            return Outcome(place, State.UNCHANGED, remarks=remarks)
        record = grade(replace(self.plan, submission=upload.submission), self.progress, self.bench)
        if record.interrupted and not self.bench.lost:
            raise KeyboardInterrupt
        with _undisturbed():
            self.store.add(participant.id, content, settings, record)
        return Outcome(place, State.GRADED, record=record, remarks=remarks)


def _remarks(upload: Upload) -> tuple[str, ...]:
    return (upload.card.problem,) if upload.card.problem else ()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Put off interrupts: what is finished is being written down."""
    held = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
