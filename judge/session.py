"""One submission on trial: case after case in a child, which any verdict but PASS replaces."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from judge import rules
from judge.case import Case
from judge.checking import Expected, Finding, check_result, result_sizes, worst_of
from judge.child.log import ChildLog
from judge.child.process import Child, ChildError, ChildOptions, ChildTimeout
from judge.child.protocol import (
    Call,
    Called,
    Collect,
    Collected,
    Failed,
    Load,
    Loaded,
    Prepare,
    Prepared,
    Profile,
    Profiled,
    ProtocolError,
    Ran,
    Ready,
    Reply,
    Request,
    Run,
)
from judge.record import CaseResult, TensorError, Timing
from judge.submission import Submission
from judge.text import plain
from judge.timing import summarize
from judge.verdict import Rules, Verdict


@dataclass(frozen=True)
class Limits:
    """Seconds that each phase may take; run is --timeout."""

    start: float = 120.0
    load: float = 120.0
    prepare: float = 120.0
    first_call: float = 600.0
    run: float = 300.0
    collect: float = 120.0


@dataclass(frozen=True)
class Repetitions:
    """Calls around the judged ones: warm-up calls and timed calls."""

    warmup: int
    repetitions: int


_CLOCK_MARGIN = 1.05  # two clocks, one of them the GPU's
UNTIMED = Repetitions(warmup=1, repetitions=1)
"""A case that is not timed is still called three times, for what is done from the third call on."""


@dataclass
class _Outcome:
    """What is known of a case so far."""

    verdict: Verdict = Verdict.PASS
    detail: str = ""
    findings: list[Finding] = field(default_factory=list)
    timing: Timing | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def errors(self) -> list[TensorError] | None:
        return worst_of(self.findings)


class _TrialOver(Exception):
    """Ends the trial of a case early."""

    def __init__(self, verdict: Verdict, detail: str) -> None:
        super().__init__(detail)
        self.verdict = verdict
        self.detail = plain(detail)


class Session:
    """Judges cases with one submission.

    progress is told the phase that begins: start, import, prepare, first call, run, check.
    """

    def __init__(
        self,
        submission: Submission,
        options: ChildOptions,
        limits: Limits,
        log: ChildLog,
        progress: Callable[[str], None],
    ) -> None:
        self.rules: tuple[Rules, str] = rules.scan_source(submission)
        self._submission = submission
        self._options = options
        self._limits = limits
        self._log = log
        self._progress = progress
        self._child: Child | None = None
        self._loaded = False
        self._import_failure: _TrialOver | None = None

    def start(self) -> None:
        """Start the child without waiting for it, so that it gets ready meanwhile."""
        if self._child is None:
            self._child = Child(self._submission, self._options, self._log)
            self._loaded = False

    def judge(
        self, suite: str, case: Case, seed: int, count: Repetitions, expected: Expected
    ) -> CaseResult:
        """Run one case and return its result, unscored; never raises for what a child does."""
        outcome = _Outcome()
        self._log.heading(f"{suite}/{case.name}")
        try:
            self._try(case, seed, count, expected, outcome)
        except _TrialOver as verdict:
            outcome.verdict, outcome.detail = verdict.verdict, verdict.detail
        if outcome.verdict is not Verdict.PASS:
            self._log.heading(f"{outcome.verdict}: {outcome.detail}")
            self.drop_child()
        return CaseResult(
            suite=suite,
            case=case,
            verdict=outcome.verdict,
            detail=outcome.detail,
            errors=outcome.errors,
            timing=outcome.timing,
            score=None,
            seconds=outcome.seconds,
        )

    def profile(self, calls: int) -> Profiled:
        """Make more calls of the case judged last, which passed, under PyTorch's profiler.

        Raises ChildError with one line that says what became of them.
        """
        try:
            ask = self._asker(self._child, _Outcome())
            return ask(Profile(calls), Profiled, "profile", self._limits.run)
        except _TrialOver as over:
            self.drop_child()
            raise ChildError(f"{over.verdict}: {over.detail}") from None

    def pause(self, paused: bool) -> None:
        """Stop the child, once it is ready, while another one is timed; or let it go on."""
        if self._child is not None and self._loaded:
            self._child.pause(paused)

    def close(self) -> None:
        """End the child in peace."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def drop_child(self) -> None:
        """End the child at once; the next case starts a fresh one."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def _try(
        self, case: Case, seed: int, count: Repetitions, expected: Expected, outcome: _Outcome
    ) -> None:
        child = self._loaded_child(outcome)
        ask = self._asker(child, outcome)
        prepared = ask(Prepare(case, seed), Prepared, "prepare", self._limits.prepare)
        called = ask(Call(), Called, "first call", self._limits.first_call)
        on_cuda = self._options.device != "cpu"
        self.rules = rules.judge_loaded(
            self.rules, called.forbidden, called.tilelang_launches, on_cuda
        )
        self._collect("call", prepared, case, expected, child, outcome)
        repetitions = count if case.timed else UNTIMED
        start = time.monotonic()
        ran = ask(Run(repetitions.warmup, repetitions.repetitions), Ran, "run", self._limits.run)
        wall_ms = (time.monotonic() - start) * 1e3
        with self._guarded("run", self._limits.run):
            data = child.read_bytes(8 * repetitions.repetitions, self._limits.collect)
        self.rules = rules.judge_loaded(self.rules, ran.forbidden, 1, on_cuda)
        if case.timed:
            samples = list(struct.unpack(f"={repetitions.repetitions}d", data))
            outcome.timing = _timing(samples, wall_ms)
        for which in ("first", "last"):
            self._collect(which, prepared, case, expected, child, outcome)

    def _loaded_child(self, outcome: _Outcome) -> Child:
        if self._import_failure is not None:
            raise self._import_failure
        if self._child is not None and self._loaded:
            return self._child
        self._progress("start")
        with self._phase("start", self._limits.start, outcome):
            try:
                self.start()
            except OSError as error:
                text = f"the judge could not start a process: {error}"
                raise _TrialOver(Verdict.NOT_RUN, text) from None
            reply = self._child.reply(self._limits.start)
        if not isinstance(reply, Ready):
            raise _TrialOver(Verdict.CRASH, f"the child did not start: {reply}")
        try:
            self._asker(self._child, outcome)(Load(), Loaded, "import", self._limits.load)
        except _TrialOver as failure:
            self._import_failure = failure
            raise
        self._loaded = True
        return self._child

    def _asker(self, child: Child, outcome: _Outcome) -> Callable[..., Reply]:
        def ask(request: Request, wanted: type[Reply], phase: str, limit_s: float) -> Reply:
            self._progress(phase)
            with self._phase(phase, limit_s, outcome):
                reply = child.ask(request, limit_s)
            if isinstance(reply, Failed):
                verdict = _verdict_of_failure(reply, phase)
                prefix = "needs CUDA and there is none: " if verdict is Verdict.NOT_RUN else ""
                raise _TrialOver(verdict, prefix + reply.error)
            if not isinstance(reply, wanted):
                raise _TrialOver(Verdict.CRASH, f"answered {type(reply).__name__} during {phase}")
            return reply

        return ask

    def _collect(
        self,
        which: str,
        prepared: Prepared,
        case: Case,
        expected: Expected,
        child: Child,
        outcome: _Outcome,
    ) -> None:
        limit_s = self._limits.collect
        ask = self._asker(child, outcome)
        collected = ask(Collect(which), Collected, "collect", limit_s)
        if collected.problem:
            raise _TrialOver(Verdict.BAD_RESULT, collected.problem)
        with self._phase("collect", limit_s, outcome):
            output, state = (child.read_bytes(size, limit_s) for size in result_sizes(case))
        changed = [
            name
            for name, digest in prepared.digests.items()
            if collected.digests.get(name) != digest
        ]
        self._progress("check")
        with self._phase("check", limit_s, outcome):
            finding = check_result(output, state, expected, case)
        outcome.findings.append(finding)
        if finding.verdict is not Verdict.PASS:
            raise _TrialOver(finding.verdict, f"{_ORDINAL[which]}: {finding.detail}")
        if changed:
            raise _TrialOver(Verdict.WRONG, f"the call changed its input {', '.join(changed)}")

    @contextmanager
    def _phase(self, phase: str, limit_s: float, outcome: _Outcome) -> Iterator[None]:
        """Add the seconds of a phase to the outcome; a child that fails in it ends the trial."""
        start = time.monotonic()
        key = phase.replace(" ", "_")
        try:
            with self._guarded(phase, limit_s):
                yield
        finally:
            spent = time.monotonic() - start
            outcome.seconds[key] = round(outcome.seconds.get(key, 0.0) + spent, 6)

    @contextmanager
    def _guarded(self, phase: str, limit_s: float) -> Iterator[None]:
        try:
            yield
        except ChildTimeout:
            text = f"{phase}: no answer within {limit_s:g} s"
            raise _TrialOver(Verdict.TIMEOUT, text) from None
        except (ChildError, ProtocolError) as error:
            raise _TrialOver(Verdict.CRASH, f"{phase}: {error}") from None


def _timing(samples_ms: list[float], wall_ms: float) -> Timing:
    """Statistics of samples that a run of `wall_ms` on the judge's own clock can have held."""
    try:
        timing = summarize(samples_ms)
    except ValueError as error:
        raise _TrialOver(Verdict.CRASH, f"reported no usable times: {error}") from None
    if sum(samples_ms) > wall_ms * _CLOCK_MARGIN:
        text = f"reported {sum(samples_ms):.6g} ms of calls in a run that took {wall_ms:.6g} ms"
        raise _TrialOver(Verdict.CRASH, text)
    return timing


_ORDINAL = {"call": "untimed call", "first": "first timed call", "last": "last timed call"}


def _verdict_of_failure(failure: Failed, phase: str) -> Verdict:
    if failure.needs_cuda:
        return Verdict.NOT_RUN
    if phase == "import":
        return Verdict.IMPORT_ERROR
    if failure.compiling and phase == "first call":
        return Verdict.COMPILE_ERROR
    return Verdict.CRASH
