"""From a plan to a record: every case of a run, judged, timed and scored."""

from __future__ import annotations

import os
import re
import signal
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol as Interface

import torch

from judge import __version__
from judge.audit import AUDITS, NO_AUDITS, Answers, AuditSeeds, answers
from judge.baseline import Choice, Measure, live_baseline, reference_baseline
from judge.caches import ceilings_folder, log_folder
from judge.case import Case, Suite
from judge.child.log import ChildLog
from judge.child.process import ChildError, ChildOptions, followed_by_profiler
from judge.child.protocol import Gauged
from judge.conditions import noise, sample_conditions
from judge.device_probe import DeviceLost, device_problem
from judge.environment import toolchain_note
from judge.floor import floor_ms, known_ceilings
from judge.implementations import (
    Implementation,
    simple_implementation,
    whole_student,
)
from judge.record import (
    SCHEMA_VERSION,
    Baseline,
    CaseResult,
    Conditions,
    Environment,
    Protocol,
    Record,
    RivalResult,
    SubmissionInfo,
    Timing,
)
from judge.reference_run import baseline_submission, null_submission
from judge.repetitions import Repetitions
from judge.rivals import FIRST_CALL_S, Rivals, failures
from judge.scoring import result_score, score_run
from judge.session import Session
from judge.strict_protocol import Terms
from judge.submission import Submission
from judge.text import plain
from judge.trial import Limits
from judge.verdict import Verdict
from judge.witness import ALLOWANCES


@dataclass(frozen=True)
class Plan:
    """All that decides a run.

    suites: the suites taken part in, whole. cases: the cases to judge, with their suite's name.
    choice: the baseline, or that it is to be measured. gate: False for practice (--no-gate).
    strict: the protocol for hostile code, else the lab's own. public: implementations to compare
    with, where the baseline is live or benchmarks are asked for. benchmarks: whether all of them
    are timed, and the submission's whole forward.
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


class Progress(Interface):
    """What a run tells whoever watches it."""

    def case(self, number: int, total: int, name: str) -> None:
        """Case `number` of `total` begins."""

    def phase(self, phase: str) -> None:
        """A phase of the current case begins."""

    def done(self, result: CaseResult) -> None:
        """The current case is judged."""


def grade(plan: Plan, progress: Progress) -> Record:
    """Run the plan. An interrupt ends it early: finished cases are kept, the children ended."""
    run = _Run(plan, progress)
    interrupted = False
    try:
        for number, (suite, case) in enumerate(plan.cases, start=1):
            progress.case(number, len(plan.cases), case.name)
            run.judge(suite, case)
    except (KeyboardInterrupt, DeviceLost):
        interrupted = True
        _ignore_further_interrupts()
    finally:
        run.close()
    return run.record(interrupted)


def _ignore_further_interrupts() -> None:
    """What is finished is about to be reported; a second Ctrl-C must not lose it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


class _Run:
    """One run under way: the submission's session, the baseline's, and what came of them."""

    def __init__(self, plan: Plan, progress: Progress) -> None:
        self._plan = plan
        self._progress = progress
        self._start = time.monotonic()
        self._created = datetime.now(UTC)
        self._results: list[CaseResult] = []
        self._measured: dict[str, Timing] = {}
        self._rival_results: list[RivalResult] = []
        self._notes = [note for note in (plan.child.sandbox.note, plan.choice.reason) if note]
        for suite in plan.suites:
            note = toolchain_note(suite.tilelang, plan.environment.tilelang)
            if note and note not in self._notes:
                self._notes.append(note)
        self._seeds = AuditSeeds()
        self._logs: list[ChildLog] = []
        self._session = self._new_session(plan.submission, f"submission-{plan.submission.name}", "")
        self._log = self._logs[0]
        self._baseline_session: Session | None = None
        self._null_session: Session | None = None
        if plan.choice.measure is Measure.REFERENCE:
            submission = baseline_submission(plan.device.type)
            self._baseline_session = self._new_session(submission, "baseline", "baseline: ")
        self._rivals = self._new_rivals()
        if plan.strict and any(case.timed for _, case in plan.cases):
            self._null_session = self._new_session(null_submission(), "null", "null: ")
        for session in self._sessions():
            session.start()

    def _new_rivals(self) -> Rivals | None:
        plan = self._plan
        live = plan.choice.measure is Measure.LIVE
        if not (live or plan.benchmarks) or not any(case.timed for _, case in plan.cases):
            return None
        students = [whole_student(plan.submission)] if plan.benchmarks else []
        return Rivals(
            [*students, *plan.public],
            simple_implementation(plan.device.type) if live else None,
            self._rival_session,
            self._session.pause,
            strict=plan.strict,
            everything=plan.benchmarks,
        )

    def _rival_session(self, one: Implementation) -> Session:
        name = f"{one.name} ({one.scope})"
        child = replace(self._plan.child, inputs=one.inputs)
        limits = replace(self._plan.limits, first_call=FIRST_CALL_S)
        log_name = f"{one.name}-{one.scope}"
        return self._new_session(one.submission, log_name, f"{name}: ", child, limits)

    def _new_session(
        self,
        submission: Submission,
        log_name: str,
        prefix: str,
        child: ChildOptions | None = None,
        limits: Limits | None = None,
    ) -> Session:
        log = ChildLog(self._log_path(log_name))
        self._logs.append(log)
        progress = self._progress
        return Session(
            submission,
            child or self._plan.child,
            limits or self._plan.limits,
            log,
            lambda phase: progress.phase(prefix + phase),
            strict=self._plan.strict,
        )

    def judge(self, suite: str, case: Case) -> None:
        """Judge one case. Where the judge itself fails, that is the case's NOT_RUN, and told."""
        try:
            result = self._judge(suite, case)
        except DeviceLost:
            raise
        except Exception as error:
            self._log.heading(traceback.format_exc())
            detail = plain(f"the judge failed: {type(error).__name__}: {error}")
            result = CaseResult(suite, case, Verdict.NOT_RUN, detail, None, None, None, {})
            for session in self._sessions():
                session.drop_child()
        self._results.append(result)
        self._progress.done(result)
        if result.verdict in (Verdict.CRASH, Verdict.TIMEOUT):
            self._check_device()

    def _check_device(self) -> None:
        """Raise DeviceLost, and note why, where the device does not answer after a killed child."""
        problem = device_problem(self._plan.device)
        if problem:
            self._notes.append(f"the run ends here: {problem}")
            raise DeviceLost(problem)

    def _judge(self, suite: str, case: Case) -> CaseResult:
        plan = self._plan
        self._progress.phase("reference")
        start = time.monotonic()
        counts = AUDITS[plan.device.type] if plan.strict else NO_AUDITS
        known = answers(case, plan.seed, counts, self._seeds, plan.device)
        reference_s = time.monotonic() - start
        result = self._attempt(suite, case, known)
        if result.noisy:
            result = replace(self._attempt(suite, case, known), repeated=True)
        if case.timed and self._rivals is not None:
            results = self._rivals.results()
            self._rival_results += results
            self._notes += failures(results)
        result.seconds["reference"] = round(reference_s, 6)
        return result

    def _attempt(self, suite: str, case: Case, known: Answers) -> CaseResult:
        """Time the case once, with whatever else is timed beside it; noisy says whether well."""
        terms = self._terms(case)
        if case.timed and self._baseline_session is not None:
            self._time_baseline(suite, case, known, terms)
        rivals = self._rivals if case.timed else None
        if rivals is not None:
            rivals.prepare(suite, case, self._plan.seed, self._plan.count, known)
            if terms is not None:
                terms = replace(terms, beside=rivals.take_turns)
            else:
                rivals.run_block(0)
        before = self._conditions(case)
        result = self._judge_alone(self._session, suite, case, known, terms)
        around = [before, self._conditions(case)]
        gauged = self._gauge(result)
        if rivals is not None:
            self._finish(rivals, strict=terms is not None)
        if result.timing is None or self._plan.device.type != "cuda":
            return result
        return replace(
            result,
            gpu_ms=gauged.milliseconds if gauged else None,
            gpu_ms_by=gauged.method if gauged else "",
            conditions=around,
            noisy=noise(result.timing, around),
        )

    def _time_baseline(self, suite: str, case: Case, known: Answers, terms: Terms | None) -> None:
        trusted = Answers(known.fixed)
        baseline = self._judge_alone(self._baseline_session, suite, case, trusted, terms)
        if baseline.verdict is Verdict.PASS and baseline.timing is not None:
            self._measured[case.name] = baseline.timing
        else:
            self._notes.append(
                f"no baseline for {case.name}: {baseline.verdict}: {baseline.detail}"
            )
            self._check_device()

    def _conditions(self, case: Case) -> Conditions | None:
        on_cuda = case.timed and self._plan.device.type == "cuda"
        return sample_conditions(self._plan.child.gpu) if on_cuda else None

    def _gauge(self, result: CaseResult) -> Gauged | None:
        """A call without its host cost, where there is a device and nobody profiles."""
        on_cuda = result.timing is not None and self._plan.device.type == "cuda"
        if not on_cuda or followed_by_profiler():
            return None
        with suppress(ChildError), self._alone(self._session):
            return self._session.gauge()
        return None

    def _finish(self, rivals: Rivals, *, strict: bool) -> None:
        if strict:
            rivals.complete_turns()
        else:
            rivals.run_block(1)
        if self._plan.device.type == "cuda" and not followed_by_profiler():
            rivals.gauge()

    def _judge_alone(
        self, session: Session, suite: str, case: Case, known: Answers, terms: Terms | None
    ) -> CaseResult:
        with self._alone(session):
            return session.judge(suite, case, self._plan.seed, self._plan.count, known, terms)

    def _terms(self, case: Case) -> Terms | None:
        """What the times of a case are held against; None where they are not."""
        if self._null_session is None or not case.timed:
            return None
        device = self._plan.device
        with self._alone(self._null_session):
            self._null_session.prepare(case, self._plan.seed)
        floor = None
        if device.type == "cuda":
            floor = floor_ms(case, known_ceilings(ceilings_folder(), device))
        return Terms(self._null_session, ALLOWANCES[device.type], floor)

    @contextmanager
    def _alone(self, session: Session) -> Iterator[None]:
        """Stop the other sessions' children while this one is at work; the null one's is idle."""
        others = [
            other
            for other in (self._session, self._baseline_session)
            if other is not None and other is not session
        ]
        for other in others:
            other.pause(True)
        try:
            yield
        finally:
            for other in others:
                other.pause(False)

    def _sessions(self) -> list[Session]:
        own = (self._session, self._baseline_session, self._null_session)
        rivals = self._rivals.sessions if self._rivals is not None else []
        return [*(session for session in own if session is not None), *rivals]

    def close(self) -> None:
        """End the children and their logs."""
        for session in self._sessions():
            session.close()
        for log in self._logs:
            log.close()

    def record(self, interrupted: bool) -> Record:
        """Score what is finished and put everything into one record."""
        plan = self._plan
        baseline = self._baseline()
        results = [
            replace(r, score=result_score(r.case, r.verdict, r.timing, baseline))
            for r in self._results
        ]
        rules, rules_detail = self._session.rules
        on_cuda = plan.device.type == "cuda"
        if self._log.cut:
            self._notes.append("the submission's log was cut at its size limit")
        return Record(
            schema_version=SCHEMA_VERSION,
            judge_version=__version__,
            created=self._created.isoformat(timespec="seconds"),
            interrupted=interrupted,
            submission=SubmissionInfo(
                name=plain(plan.submission.name),
                path=plain(plan.submission.path),
                digest=plan.submission.digest,
                rules=rules,
                rules_detail=plain(rules_detail),
                log=str(self._log.path),
                log_cut=self._log.cut,
            ),
            environment=plan.environment,
            protocol=Protocol(
                warmup=plan.count.warmup,
                repetitions=plan.count.repetitions,
                seed=plan.seed,
                clock="cuda_events" if on_cuda else "host_clock",
                official=on_cuda,
                timeout_s=plan.limits.run,
                name="strict" if plan.strict else "lab",
                sandbox=str(plan.child.sandbox.kind),
            ),
            baseline=baseline,
            results=results,
            score=score_run(plan.suites, results, gate_on=plan.gate, rules=rules, official=on_cuda),
            notes=self._notes,
            seconds=round(time.monotonic() - self._start, 3),
            rivals=self._rival_results,
        )

    def _baseline(self) -> Baseline:
        if self._plan.choice.baseline is not None:
            return self._plan.choice.baseline
        if self._plan.choice.measure is Measure.LIVE:
            return live_baseline(self._rival_results)
        return reference_baseline(self._plan.device.type, self._measured)

    def _log_path(self, name: str) -> Path:
        safe = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:60]
        return log_folder() / f"{self._created:%Y%m%dT%H%M%S}-{os.getpid()}-{safe}.log"
