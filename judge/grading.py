"""From a plan to a record: every case of a run, judged, timed and scored."""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from judge import __version__
from judge.audit import Answers
from judge.baseline import Measure, live_baseline, reference_baseline
from judge.bench import Bench, Plan, Progress, log_path
from judge.case import Case
from judge.child.errors import ChildError
from judge.child.log import ChildLog
from judge.child.protocol import Gauged
from judge.child.variables import followed_by_profiler
from judge.conditions import noise, sample_conditions
from judge.device_probe import DeviceLost, device_problem
from judge.environment import toolchain_note
from judge.implementations import STUDENT, Implementation, whole_student
from judge.record import (
    SCHEMA_VERSION,
    Baseline,
    CaseResult,
    Conditions,
    Protocol,
    Record,
    RivalResult,
    SubmissionInfo,
)
from judge.rivals import Rivals, failures
from judge.scoring import result_score, score_run
from judge.session import Session
from judge.slices import predict
from judge.strict_protocol import Terms
from judge.submission import Submission
from judge.text import plain
from judge.trial import TrialOver
from judge.verdict import Verdict
from judge.witness import charge_note

MOST_TIMEOUTS = 3
"""Cases of one submission that may run out of time; the rest is not run, lest it hold the lane."""

NO_CONDITIONS = "NVML says nothing of this device: only their spread tells noisy times"


@dataclass(frozen=True)
class Opened:
    """A submission's session and log, opened at `created`; its child may be starting."""

    created: datetime
    log: ChildLog
    session: Session

    def close(self) -> None:
        """End the child and the log."""
        self.session.close()
        self.log.close()


def open_submission(submission: Submission, bench: Bench) -> Opened:
    """Start a submission's child without waiting for it. Raises OSError where there is none."""
    created = datetime.now(UTC)
    log = ChildLog(log_path(created, f"submission-{submission.digest[:8]}-{submission.name}"))
    session = bench.session(submission, log)
    try:
        session.start()
    except BaseException:
        log.close()
        raise
    return Opened(created, log, session)


def grade(
    plan: Plan,
    progress: Progress,
    bench: Bench | None = None,
    opened: Opened | None = None,
    compile_errors: Mapping[str, str] | None = None,
) -> Record:
    """Run the plan. An interrupt ends it early: finished cases are kept, the children ended.

    bench: what the run shares with those of other submissions under the same plan, and is left
    open; None where it stands alone. opened: the submission, where it was opened ahead; closed
    here. compile_errors: by case, what a compile stage says where there is no GPU to run it.
    """
    shared = bench or Bench(plan, progress)
    run = _Run(plan, progress, shared, opened, compile_errors or {})
    interrupted = False
    try:
        shared.answer_ahead()
        run.note(shared.measure_quiet_machine())
        for number, (suite, case) in enumerate(plan.cases, start=1):
            progress.case(number, len(plan.cases), case.name)
            run.judge(suite, case)
    except (KeyboardInterrupt, DeviceLost):
        interrupted = True
        _ignore_further_interrupts()
    finally:
        run.close()
        if bench is None:
            shared.close()
    return run.record(interrupted)


def _ignore_further_interrupts() -> None:
    """What is finished is about to be reported; a second Ctrl-C must not lose it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


class _Run:
    """One run under way: the submission's session, what it shares, and what came of them."""

    def __init__(
        self,
        plan: Plan,
        progress: Progress,
        bench: Bench,
        opened: Opened | None,
        compile_errors: Mapping[str, str],
    ) -> None:
        self._plan = plan
        self._progress = progress
        self._bench = bench
        self._compile_errors = compile_errors if plan.device.type == "cpu" else {}
        self._start = time.monotonic()
        self._results: list[CaseResult] = []
        self._timeouts = 0
        self._notes = [note for note in (plan.child.sandbox.note, plan.choice.reason) if note]
        for suite in plan.suites:
            note = toolchain_note(suite.tilelang, plan.environment.tilelang)
            if note and note not in self._notes:
                self._notes.append(note)
        opened = opened or open_submission(plan.submission, bench)
        self._created, self._log, self._session = opened.created, opened.log, opened.session
        self._logs, self._own_sessions = [self._log], [self._session]
        self._rival_results: list[RivalResult] = []
        self._too_large: set[str] = set()  # for the device, with no submission there
        self._rivals = self._new_rivals() if plan.has_rivals else None
        for session in self._own_sessions:
            session.start()

    def _new_rivals(self) -> Rivals:
        plan = self._plan
        students = [whole_student(plan.submission)] if plan.benchmarks else []
        return Rivals(
            [*students, *plan.compared],
            plan.simple,
            self._rival_session,
            self._session.pause,
            self._bench.known_rivals,
            everything=plan.benchmarks,
        )

    def _rival_session(self, one: Implementation) -> Session:
        """The run's, but for the submission's whole forward, which is this submission's own."""
        if one.name != STUDENT:
            return self._bench.rival(one)
        log = ChildLog(log_path(self._created, f"{one.name}-{one.scope}"))
        session = self._bench.new_rival(one, log)
        self._logs.append(log)
        self._own_sessions.append(session)
        return session

    def note(self, line: str) -> None:
        """Add a line that a reader of the report must not miss, if there is one."""
        if line:
            self._notes.append(line)

    def judge(self, suite: str, case: Case) -> None:
        """Judge one case. Where the judge itself fails, that is the case's NOT_RUN, and told.

        After MOST_TIMEOUTS cases that ran out of time, or once the submission has taken all the
        time that it may, it is a TIMEOUT that is not run.
        """
        if detail := self._why_not_run():
            result = CaseResult(suite, case, Verdict.TIMEOUT, detail, None, None, None, {})
            self._results.append(result)
            self._progress.done(result)
            return
        try:
            result = self._judge(suite, case)
        except DeviceLost:
            raise
        except Exception as error:
            self._log.heading(traceback.format_exc())
            detail = plain(f"the judge failed: {type(error).__name__}: {error}")
            result = CaseResult(suite, case, Verdict.NOT_RUN, detail, None, None, None, {})
            for session in self._own_sessions:
                session.drop_child()
            self._bench.drop_children()
        error = self._compile_errors.get(case.name)
        if error is not None and result.verdict is Verdict.NOT_RUN:
            result = replace(result, verdict=Verdict.COMPILE_ERROR, detail=error)
        self._results.append(result)
        self._progress.done(result)
        self._timeouts += result.verdict is Verdict.TIMEOUT
        if result.verdict in (Verdict.CRASH, Verdict.TIMEOUT):
            self._check_device()

    def _why_not_run(self) -> str:
        if self._timeouts == MOST_TIMEOUTS:
            return f"not run: {MOST_TIMEOUTS} earlier cases ran out of time"
        whole_s = self._plan.limits.whole
        if time.monotonic() - self._start > whole_s:
            return f"not run: earlier cases took more than the {whole_s:g} s that all may take"
        return ""

    def _check_device(self) -> None:
        """Raise DeviceLost, and note why, where the device does not answer after a killed child."""
        problem = device_problem(self._plan.device)
        if problem:
            self._notes.append(f"the run ends here: {problem}")
            self._bench.lost = problem
            raise DeviceLost(problem)

    def _judge(self, suite: str, case: Case) -> CaseResult:
        self._progress.phase("reference")
        self._bench.at_rest(True)
        seconds: dict[str, float] = {}
        with _timed(seconds, "reference"):
            known = self._bench.known(suite, case)
        with _timed(seconds, "null"):
            terms = self._bench.terms(case, self._session)
        with _timed(seconds, "baseline"):
            problem = self._bench.measure_baseline(suite, case, known, *self._own_sessions)
        if problem:
            self._notes.append(f"no baseline for {case.name}: {problem}")
            self._check_device()
        result = self._attempt(suite, case, known, terms)
        if result.noisy:
            result = replace(self._attempt(suite, case, known, terms), repeated=True)
        if case.timed and self._rivals is not None:
            results = self._rivals.results()
            self._rival_results += results
            self._notes += failures(results)
        result.seconds.update(seconds)
        if result.timing is not None and (told := charge_note(result.witness)):
            self.note(f"{case.name}: {told}")
        return result

    def _attempt(self, suite: str, case: Case, known: Answers, terms: Terms | None) -> CaseResult:
        """Time the case once, in turns with the rivals; noisy says whether well."""
        plan = self._plan
        rivals = self._rivals if case.timed else None
        if rivals is not None:
            prepare = partial(rivals.prepare, suite, case, plan.seed, plan.count, known)
            problem = self._bench.quietly(case, prepare, self._session)
            if not problem and rivals.without_room - self._too_large:
                for session in self._own_sessions:
                    session.drop_child()  # with all the memory that it holds
                problem = self._bench.quietly(case, prepare, self._session)
                self._too_large |= rivals.without_room
            if problem:
                return CaseResult(suite, case, Verdict.NOT_RUN, problem, None, None, None, {})
        beside = partial(self._run_block, rivals, case) if rivals is not None else None
        before = self._conditions(case)
        with self._bench.alone():
            result = self._session.judge(suite, case, plan.seed, plan.count, known, terms, beside)
        around = [before, self._conditions(case)]
        with _timed(result.seconds, "gpu_time"):
            gauged = self._gauge(result)
        if rivals is not None:
            self._finish(rivals, case)
        if result.timing is None or plan.device.type != "cuda":
            return result
        return replace(
            result,
            gpu_ms=gauged.milliseconds if gauged else None,
            gpu_ms_by=gauged.method if gauged else "",
            conditions=around,
            noisy=noise(result.timing, around) or charge_note(result.witness),
        )

    def _run_block(self, rivals: Rivals, case: Case, number: int) -> None:
        """Let the rivals run a block.

        Raises TrialOver where the machine is not quiet, or the submission leaves too little memory
        to what had enough without it: else it could choose what it is compared with.
        """
        too_large = rivals.without_room
        block = partial(rivals.run_block, number)
        problem = self._bench.quietly(case, block, self._session)
        if not problem and (crowded_out := rivals.without_room - too_large):
            names = ", ".join(sorted(crowded_out))
            problem = f"beside the submission there was too little device memory for {names}"
        if problem:
            rivals.forget_turns()
            raise TrialOver(Verdict.NOT_RUN, problem)

    def _conditions(self, case: Case) -> Conditions | None:
        on_cuda = case.timed and self._plan.device.type == "cuda"
        if not on_cuda:
            return None
        found = sample_conditions(self._plan.child.gpu)
        if found is None and NO_CONDITIONS not in self._notes:
            self._notes.append(NO_CONDITIONS)
        return found

    def _gauge(self, result: CaseResult) -> Gauged | None:
        """A call without its host cost, where there is a device and nobody profiles."""
        on_cuda = result.timing is not None and self._plan.device.type == "cuda"
        if not on_cuda or followed_by_profiler():
            return None
        with suppress(ChildError), self._bench.alone():
            return self._session.gauge()
        return None

    def _finish(self, rivals: Rivals, case: Case) -> None:
        due = partial(rivals.complete_turns, rivals.blocks_run)
        complete = rivals.turns_are_complete
        if not complete and (problem := self._bench.quietly(case, due, self._session)):
            rivals.forget_turns()
            self.note(f"{case.name}: no times of what takes turns: {problem}")
        if self._plan.device.type == "cuda" and not followed_by_profiler():
            rivals.gauge()

    def close(self) -> None:
        """End the submission's children and their logs."""
        for session in self._own_sessions:
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
            prediction=predict(*plan.predicted, results, self._rival_results)
            if plan.predicted
            else None,
        )

    def _baseline(self) -> Baseline:
        if self._plan.choice.baseline is not None:
            return self._plan.choice.baseline
        if self._plan.choice.measure is Measure.LIVE:
            return live_baseline(self._rival_results)
        return reference_baseline(self._plan.device.type, self._bench.measured)


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Note the seconds that something takes, beside those of the trial's phases."""
    start = time.monotonic()
    yield
    seconds[name] = round(time.monotonic() - start, 6)
