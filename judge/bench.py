"""What every submission of a run is judged with: answers, and sessions beside its own."""

from __future__ import annotations

import contextlib
import os
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol as Interface

import torch

from judge.audit import AUDITS, NO_AUDITS, Answers, AuditSeeds, answers
from judge.baseline import Choice, Measure
from judge.caches import ceilings_folder, log_folder
from judge.case import HIDDEN_SUITE, Case, Suite
from judge.checkpoints import CheckpointFile
from judge.child.errors import ChildError
from judge.child.log import ChildLog
from judge.child.process import ChildOptions
from judge.floor import floor_ms, known_ceilings
from judge.implementations import FULL, STUDENT, Implementation, simple_implementation
from judge.kept_answers import KeptAnswers, rooms_for_answers
from judge.record import CaseResult, Environment, Timing
from judge.reference_run import baseline_submission, null_submission
from judge.repetitions import Repetitions
from judge.rivals import Known
from judge.session import Session
from judge.slices import Slice
from judge.strict_protocol import Terms
from judge.submission import Submission
from judge.trial import Limits
from judge.verdict import Verdict
from judge.witness import ALLOWANCES, unquiet

_QUIET_REPETITIONS = 5
_WAITS_S = (0.0, 0.2, 1.0)
"""Before each attempt to time something on a quiet machine."""


@dataclass(frozen=True)
class Plan:
    """All that decides a run.

    suites: the suites taken part in, whole. cases: the cases to judge, with their suite's name.
    choice: the baseline, or that it is to be measured. gate: False for practice (--no-gate).
    strict: the protocol for hostile code, else the lab's own. public: implementations to compare
    with, where the baseline is live or benchmarks are asked for. benchmarks: whether all of them
    are timed, and the submission's whole forward. predicted: a slice to predict, with its times.
    """

    submission: Submission
    suites: Sequence[Suite]
    cases: Sequence[tuple[str, Case]]
    device: torch.device
    environment: Environment
    child: ChildOptions
    seed: int
    count: Repetitions
    limits: Limits
    choice: Choice
    gate: bool
    strict: bool
    public: Sequence[Implementation] = ()
    benchmarks: bool = False
    predicted: tuple[Slice, CheckpointFile] | None = None

    @property
    def compared(self) -> list[Implementation]:
        """The public implementations that are called. A core is never t100: in benchmarks only."""
        return [one for one in self.public if self.benchmarks or one.scope == FULL]

    @property
    def timed(self) -> list[Case]:
        """The cases whose calls are timed."""
        return [case for _, case in self.cases if case.timed]

    @property
    def simple(self) -> Implementation | None:
        """What takes turns as t60; None where the baseline is not live."""
        live = self.choice.measure is Measure.LIVE
        return simple_implementation(self.device.type) if live else None

    @property
    def has_rivals(self) -> bool:
        """Whether anything takes turns with the submission."""
        return bool(self.timed) and (self.benchmarks or self.choice.measure is Measure.LIVE)


class Progress(Interface):
    """What a run tells whoever watches it."""

    def case(self, number: int, total: int, name: str) -> None:
        """Case `number` of `total` begins."""

    def phase(self, phase: str) -> None:
        """A phase of the current case begins."""

    def done(self, result: CaseResult) -> None:
        """The current case is judged."""


class Bench:
    """Shared by the submissions of one run, which it outlives; they are judged one at a time.

    The plan's submission means nothing here. seeds: of the audits, None for new ones. sharing: how
    many benches keep answers in this machine's memory; None where one submission is judged, for
    which moving them there would take longer than making them: the device alone keeps some.
    measured: the baseline's times by case, each measured once, so that all submissions of a bench
    are scored by the same ones. known_rivals: what takes turns and was right beside a submission.
    lost: one line that says why the device answers no more, empty while it does. at_rest: told True
    where nothing is timed for a while, False before something is: what gets ready beside the
    submission under way, such as the next one's child, does so in between.
    """

    def __init__(
        self,
        plan: Plan,
        progress: Progress,
        seeds: AuditSeeds | None = None,
        sharing: int | None = None,
    ) -> None:
        self.measured: dict[str, Timing] = {}
        self.known_rivals: Known = set()
        self.lost = ""
        self.at_rest: Callable[[bool], None] = lambda rest: None
        self._plan = plan
        self._progress = progress
        self._seeds = seeds or AuditSeeds()
        self._kept = KeptAnswers(plan.device, *rooms_for_answers(plan.device, sharing))
        self._logs: list[ChildLog] = []
        self._baseline: Session | None = None
        self._null: Session | None = None
        self._quiet_ms: dict[str, float] = {}
        on_cuda = plan.strict and plan.device.type == "cuda"
        self._ceilings = known_ceilings(ceilings_folder(), plan.device) if on_cuda else None
        created = datetime.now(UTC)
        if plan.choice.measure is Measure.REFERENCE:
            submission = baseline_submission(plan.device.type)
            self._baseline = self._own_session(submission, created, "baseline", strict=False)
        if plan.strict and plan.timed:
            self._null = self._own_session(null_submission(), created, "null", strict=True)
        self._rivals: dict[tuple[str, str], Session] = {}
        if plan.has_rivals:
            for one in (*plan.compared, *([plan.simple] if plan.simple is not None else [])):
                log = self._own_log(created, f"{one.name}-{one.scope}")
                self._rivals[one.name, one.scope] = self.new_rival(one, log)
        for session in self._sessions():
            with contextlib.suppress(OSError):  # told by the first case that needs it
                session.start()

    def session(
        self, submission: Submission, log: ChildLog, prefix: str = "", *, strict: bool | None = None
    ) -> Session:
        """A session under the run's options.

        prefix: set before the phases that the run's progress is told. strict: as the run itself
        where None.
        """
        return Session(
            submission,
            self._plan.child,
            self._plan.limits,
            log,
            lambda phase: self._progress.phase(prefix + phase),
            strict=self._plan.strict if strict is None else strict,
            at_rest=lambda rest: self.at_rest(rest),
        )

    def rival(self, one: Implementation) -> Session:
        """The session of an implementation that takes turns with every submission of the run."""
        return self._rivals[one.name, one.scope]

    def new_rival(self, one: Implementation, log: ChildLog) -> Session:
        """A session of something that takes turns in the lab's loop.

        What is hostile among it is checked with fresh contents.
        """
        prefix = f"{one.name} ({one.scope}): "
        return Session(
            one.submission,
            replace(self._plan.child, inputs=one.inputs),
            self._plan.limits,
            log,
            lambda phase: self._progress.phase(prefix + phase),
            strict=self._plan.strict and one.name == STUDENT,
        )

    def known(self, suite: str, case: Case) -> Answers:
        """What calls of a case must return, by the same seeds for every submission.

        Nothing of hidden cases stays on the device, where a public case could see how much it is.
        """
        plan = self._plan
        counts = AUDITS[plan.device.type] if plan.strict else NO_AUDITS
        return self._kept.of(
            case,
            lambda: answers(case, plan.seed, counts, self._seeds, plan.device),
            may_stay=suite != HIDDEN_SUITE,
        )

    def answer_ahead(self) -> None:
        """Make answers that can stay on the device, while the children start.

        Those of hidden cases may not. Where it fails, the case that needs them will say so.
        """
        self._progress.phase("reference")
        with contextlib.suppress(Exception):
            for suite, case in self._plan.cases:
                if case.timed and suite != HIDDEN_SUITE and self._kept.may_stay(case):
                    self.known(suite, case)

    def terms(self, case: Case, *paused: Session) -> Terms | None:
        """What the times of a case are held against; None where they are not.

        paused: sessions that stand still while the null submission is prepared.
        """
        if self._null is None or not case.timed:
            return None
        with self.alone(*paused):
            self._null.prepare_to_repeat(case, self._plan.seed)
        floor = floor_ms(case, self._ceilings) if self._ceilings else None
        kind = self._plan.device.type
        quiet_ms = self._quiet_ms.get(case.name)
        on_cuda = kind == "cuda"
        return Terms(
            *(self._null, ALLOWANCES[kind], floor, quiet_ms), rehearsed=on_cuda, looped=on_cuda
        )

    def measure_quiet_machine(self) -> str:
        """Run the null submission alone, once, before any submission has been loaded.

        On a CPU, where a stopped child slows nobody down, there is nothing to compare later. The
        line that a report must have where it fails, else empty.
        """
        if self._null is None or self._plan.device.type == "cpu" or self._quiet_ms:
            return ""
        self._progress.phase("null")
        try:
            for case in self._plan.timed:
                self._null.prepare_to_repeat(case, self._plan.seed)
                rests = [self._null.repeat().rest_ms for _ in range(_QUIET_REPETITIONS)]
                self._quiet_ms[case.name] = statistics.median(rests)
        except ChildError as error:  # the cases will say so too
            return f"the submission that does nothing failed: {error}"
        return ""

    def measure_baseline(self, suite: str, case: Case, known: Answers, *paused: Session) -> str:
        """Time the baseline at a timed case where the run has no time of it yet.

        It is trusted, and timed by the lab's loop alone. One line that says why there is still no
        time, else empty. paused: sessions that stand still meanwhile.
        """
        if self._baseline is None or not case.timed or case.name in self.measured:
            return ""
        plan, trusted = self._plan, Answers(known.fixed)
        results: list[CaseResult] = []

        def measure() -> None:
            result = self._baseline.judge(suite, case, plan.seed, plan.count, trusted)
            results.append(result)

        problem = self.quietly(case, measure, *paused)
        last = results[-1] if results else None
        if last is not None and last.verdict is not Verdict.PASS:
            return f"{last.verdict}: {last.detail}"
        if not problem:
            self.measured[case.name] = last.timing
        return problem

    def quietly(self, case: Case, work: Callable[[], None], *paused: Session) -> str:
        """Time something trusted while the machine is as quiet as before any submission was loaded.

        A kernel that a stopped submission has left on the device makes what is timed beside it look
        slow, and its own scores high. So the null submission is heard before and after, and nobody
        of `paused` goes on in between. What is disturbed is done again, a little later; one line
        that says so where that does not help, else empty. Nothing is heard where nothing was
        measured before: on a CPU, under the lab's protocol.
        """
        problem = ""
        for wait_s in _WAITS_S:
            time.sleep(wait_s)
            self.at_rest(False)
            with _paused(paused):
                problem = self._disturbance(case)
                if not problem:
                    work()
                    problem = self._disturbance(case)
            if not problem:
                break
        return problem

    def _disturbance(self, case: Case) -> str:
        """One line where the null submission, prepared by `terms`, finds the machine busy."""
        quiet_ms = self._quiet_ms.get(case.name)
        if self._null is None or quiet_ms is None:
            return ""
        try:
            return unquiet([self._null.repeat() for _ in range(_QUIET_REPETITIONS)], quiet_ms)
        except ChildError as error:
            with contextlib.suppress(ChildError):
                self._null.prepare_to_repeat(case, self._plan.seed)
            return f"the submission that does nothing failed: {error}"

    @contextmanager
    def alone(self, *paused: Session) -> Iterator[None]:
        """Stop the baseline's child and those of `paused`; the null one's is idle anyway."""
        with _paused([*paused, *([self._baseline] if self._baseline is not None else [])]):
            yield

    def drop_children(self) -> None:
        """End the children at once; the next case starts fresh ones."""
        for session in self._sessions():
            session.drop_child()

    def close(self) -> None:
        """End the children and their logs."""
        for session in self._sessions():
            session.close()
        for log in self._logs:
            log.close()

    def _own_session(
        self, submission: Submission, created: datetime, name: str, *, strict: bool
    ) -> Session:
        log = self._own_log(created, name)
        return self.session(submission, log, f"{name}: ", strict=strict)

    def _own_log(self, created: datetime, name: str) -> ChildLog:
        log = ChildLog(log_path(created, name))
        self._logs.append(log)
        return log

    def _sessions(self) -> list[Session]:
        own = [session for session in (self._baseline, self._null) if session is not None]
        return [*own, *self._rivals.values()]


def log_path(created: datetime, name: str) -> Path:
    """Where what a session prints goes: by when its run began, this process and a name."""
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:60]
    return log_folder() / f"{created:%Y%m%dT%H%M%S}-{os.getpid()}-{safe}.log"


@contextmanager
def _paused(sessions: Sequence[Session]) -> Iterator[None]:
    for session in sessions:
        session.pause(True)
    try:
        yield
    finally:
        for session in sessions:
            session.pause(False)
