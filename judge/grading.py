"""From a plan to a record: every case of a run, judged, timed and scored."""

from __future__ import annotations

import os
import re
import signal
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol as Interface

import torch

from judge import __version__
from judge.baseline import Choice, reference_baseline
from judge.caches import log_folder
from judge.case import Case, Suite
from judge.child.log import ChildLog
from judge.child.process import ChildOptions
from judge.device_probe import DeviceLost, device_problem
from judge.environment import toolchain_note
from judge.record import (
    SCHEMA_VERSION,
    Baseline,
    CaseResult,
    Environment,
    Protocol,
    Record,
    SubmissionInfo,
    Timing,
)
from judge.reference_run import baseline_submission, expected_result
from judge.scoring import result_score, score_run
from judge.session import Limits, Repetitions, Session
from judge.submission import Submission
from judge.text import plain
from judge.verdict import Verdict


@dataclass(frozen=True)
class Plan:
    """All that decides a run.

    suites: the suites taken part in, whole. cases: the cases to judge, with their suite's name.
    choice: the baseline, or that it is to be measured. gate: False for practice (--no-gate).
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
        self._notes = [note for note in (plan.child.sandbox.note, plan.choice.reason) if note]
        for suite in plan.suites:
            note = toolchain_note(suite.tilelang, plan.environment.tilelang)
            if note and note not in self._notes:
                self._notes.append(note)
        self._log = ChildLog(self._log_path(f"submission-{plan.submission.name}"))
        self._session = Session(plan.submission, plan.child, plan.limits, self._log, progress.phase)
        self._baseline_log: ChildLog | None = None
        self._baseline_session: Session | None = None
        if plan.choice.baseline is None:
            self._baseline_log = ChildLog(self._log_path("baseline"))
            self._baseline_session = Session(
                baseline_submission(plan.device.type),
                plan.child,
                plan.limits,
                self._baseline_log,
                lambda phase: progress.phase(f"baseline: {phase}"),
            )
            self._baseline_session.start()
        self._session.start()

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
        expected = expected_result(case, plan.seed, plan.device)
        reference_s = time.monotonic() - start
        if case.timed and self._baseline_session is not None:
            self._session.pause(True)
            self._baseline_session.pause(False)
            baseline = self._baseline_session.judge(suite, case, plan.seed, plan.count, expected)
            self._baseline_session.pause(True)
            self._session.pause(False)
            if baseline.verdict is Verdict.PASS and baseline.timing is not None:
                self._measured[case.name] = baseline.timing
            else:
                self._notes.append(
                    f"no baseline for {case.name}: {baseline.verdict}: {baseline.detail}"
                )
                self._check_device()
        result = self._session.judge(suite, case, plan.seed, plan.count, expected)
        result.seconds["reference"] = round(reference_s, 6)
        return result

    def _sessions(self) -> list[Session]:
        return [one for one in (self._session, self._baseline_session) if one is not None]

    def close(self) -> None:
        """End the children and their logs."""
        for session in self._sessions():
            session.pause(False)
            session.close()
        for log in (self._log, self._baseline_log):
            if log is not None:
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
                sandbox=str(plan.child.sandbox.kind),
            ),
            baseline=baseline,
            results=results,
            score=score_run(plan.suites, results, gate_on=plan.gate, rules=rules, official=on_cuda),
            notes=self._notes,
            seconds=round(time.monotonic() - self._start, 3),
        )

    def _baseline(self) -> Baseline:
        if self._plan.choice.baseline is not None:
            return self._plan.choice.baseline
        return reference_baseline(self._plan.device.type, self._measured)

    def _log_path(self, name: str) -> Path:
        safe = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:60]
        return log_folder() / f"{self._created:%Y%m%dT%H%M%S}-{os.getpid()}-{safe}.log"
