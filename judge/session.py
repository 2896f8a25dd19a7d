"""One submission on trial: case after case in a child, which any verdict but PASS replaces."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from judge import rules
from judge.audit import Answers, fresh_seed
from judge.case import HIDDEN_SUITE, Case
from judge.checking import worst_of
from judge.child.errors import ChildError
from judge.child.log import ChildLog
from judge.child.process import Child, ChildOptions
from judge.child.protocol import (
    Call,
    Called,
    Gauge,
    Gauged,
    Load,
    Loaded,
    Prepare,
    Prepared,
    Profile,
    Profiled,
    ProtocolError,
    Ready,
    Reply,
)
from judge.lab_protocol import loop_samples, run_lab_protocol
from judge.record import CaseResult
from judge.repetitions import Repetitions
from judge.strict_protocol import Terms, repetition_of, run_strict_protocol
from judge.submission import Submission
from judge.trial import Limits, Outcome, Trial, TrialOver, usable_timing
from judge.verdict import Rules, Verdict
from judge.witness import Repetition


class Session:
    """Judges cases with one submission.

    From its first hidden case on, nothing that its children leave in their cache is kept: one of a
    later run, or of another participant's equal submission, could print it in a public case.
    progress is told the phase that begins: start, import, prepare, first call, run, check.
    strict: the protocol for hostile code, else the lab's own. at_rest: told whether something is
    being timed, as `Bench.at_rest` is.
    """

    def __init__(
        self,
        submission: Submission,
        options: ChildOptions,
        limits: Limits,
        log: ChildLog,
        progress: Callable[[str], None],
        *,
        strict: bool,
        at_rest: Callable[[bool], None] = lambda rest: None,
    ) -> None:
        self.rules: tuple[Rules, str] = rules.scan_source(submission)
        self._submission = submission
        self._options = options
        self._limits = limits
        self._log = log
        self._progress = progress
        self._strict = strict
        self._at_rest = at_rest
        self._seen_hidden = False
        self._child: Child | None = None
        self._greeting: Reply | None = None
        self._loaded = False
        self._stops = 0
        self._import_failure: TrialOver | None = None

    def start(self) -> None:
        """Start the child without waiting for it, so that it gets ready meanwhile."""
        if self._child is None:
            self._child = Child(
                self._submission, self._options, self._log, keeps_cache=not self._seen_hidden
            )
            self._greeting = None
            self._loaded = False
            self._stops = 0

    def get_ready(self) -> None:
        """Start the child and wait until it could load the submission.

        Nothing of the submission has run then. What goes wrong here is told by `judge`.
        """
        with contextlib.suppress(ChildError, ProtocolError, OSError):
            self.start()
            if self._greeting is None:
                self._greeting = self._child.reply(self._limits.start)

    def judge(
        self,
        suite: str,
        case: Case,
        seed: int,
        count: Repetitions,
        answers: Answers,
        terms: Terms | None = None,
        beside: Callable[[int], None] | None = None,
    ) -> CaseResult:
        """Run one case and return its result, unscored; never raises for what a child does.

        terms: what the times of a timed case are held against under the strict protocol. beside:
        called before each half of the lab's loop, so that something else takes turns with it.
        """
        outcome = Outcome()
        self._log.heading(f"{suite}/{case.name}")
        if suite == HIDDEN_SUITE and not self._seen_hidden:
            self._seen_hidden = True
            if self._child is not None:
                self._child.seal_cache()
        try:
            self._try(case, seed, count, answers, terms, beside, outcome)
        except TrialOver as verdict:
            outcome.verdict, outcome.detail = verdict.verdict, verdict.detail
        if outcome.verdict is not Verdict.PASS:
            self._log.heading(f"{outcome.verdict}: {outcome.detail}")
            self.drop_child()
        return CaseResult(
            suite=suite,
            case=case,
            verdict=outcome.verdict,
            detail=outcome.detail,
            errors=worst_of(outcome.findings),
            timing=outcome.timing,
            score=None,
            seconds=outcome.seconds,
            audits=outcome.audits,
            witness=outcome.witness,
            repeated=outcome.repeated,
        )

    def prepare(self, case: Case, seed: int) -> None:
        """Let the child make a case's inputs and call the submission, ready for `run`.

        Raises ChildError with one line that says what went wrong.
        """
        with self._no_trial():
            trial = self._trial(Outcome())
            trial.ask(Prepare(case, seed), Prepared, "prepare", self._limits.prepare)
            trial.ask(Call(), Called, "first call", self._limits.first_call)

    def prepare_to_repeat(self, case: Case, seed: int) -> None:
        """`prepare`, and on CUDA a first repetition, which captures what later ones replay."""
        self.prepare(case, seed)
        if self._options.device != "cpu":
            self.repeat()

    def repeat(self) -> Repetition:
        """One repetition with fresh contents, whose result nobody looks at. Raises ChildError.

        On CUDA it is rehearsed, as a submission's are.
        """
        with self._no_trial():
            trial = self._trial(Outcome())
            on_cuda = self._options.device != "cpu"
            reply = trial.repeat(
                *(fresh_seed(), None, "run beside", self._limits.run), rehearsed=on_cuda
            )
            return repetition_of(trial, reply)

    def run(self, count: Repetitions) -> list[float]:
        """Milliseconds of calls in the lab's loop, of the case prepared last. Raises ChildError."""
        with self._no_trial():
            return loop_samples(self._trial(Outcome()), count)

    def gauge(self) -> Gauged:
        """A call of the case prepared last without its host cost, on CUDA. Raises ChildError."""
        with self._no_trial():
            trial = self._trial(Outcome())
            gauged = trial.ask(Gauge(), Gauged, "gpu time", self._limits.run)
            usable_timing([gauged.milliseconds])
        if gauged.spoilt:
            self.drop_child()
        return gauged

    def profile(self, calls: int) -> Profiled:
        """Make more calls of the case judged last, which passed, under PyTorch's profiler.

        Raises ChildError with one line that says what became of them.
        """
        with self._no_trial():
            trial = self._trial(Outcome())
            return trial.ask(Profile(calls), Profiled, "profile", self._limits.run)

    def pause(self, paused: bool) -> None:
        """Stop the child, once it is ready, while another one is timed; or let it go on.

        Who stopped it lets it go on: stopped twice, it goes on when it has been let go twice.
        """
        if self._child is None or not self._loaded:
            return
        self._stops = max(0, self._stops + (1 if paused else -1))
        if self._stops == paused:
            self._child.pause(paused)

    def hold(self, held: bool) -> None:
        """Stop a child that was started ahead, ready or not; or let it go on."""
        if self._child is not None:
            self._child.pause(held)

    def close(self) -> None:
        """End the child in peace."""
        if self._child is not None:
            if self._stops:
                self._child.pause(False)
            self._child.close()
            self._child = None

    def drop_child(self) -> None:
        """End the child at once; the next case starts a fresh one."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def _try(
        self,
        case: Case,
        seed: int,
        count: Repetitions,
        answers: Answers,
        terms: Terms | None,
        beside: Callable[[int], None] | None,
        outcome: Outcome,
    ) -> None:
        self._at_rest(True)
        trial = self._trial(outcome)
        prepared = trial.ask(Prepare(case, seed), Prepared, "prepare", self._limits.prepare)
        called = trial.ask(Call(), Called, "first call", self._limits.first_call)
        on_cuda = self._options.device != "cpu"
        self.rules = rules.judge_loaded(
            self.rules, called.forbidden, called.tilelang_launches, on_cuda
        )
        inputs = prepared.digests | answers.fixed.input_digests
        trial.collect("call", "untimed call", case, answers.fixed, inputs)
        if case.timed:
            self._at_rest(False)
        if self._strict:
            run_strict_protocol(trial, case, count, answers, inputs, terms, beside)
        else:
            run_lab_protocol(trial, case, count, answers, inputs, beside)
        self.rules = rules.judge_loaded(self.rules, trial.forbidden, 1, on_cuda)

    @contextlib.contextmanager
    def _no_trial(self) -> Iterator[None]:
        """Outside a trial a failure ends the child and is the caller's to tell."""
        try:
            yield
        except TrialOver as over:
            self.drop_child()
            raise ChildError(f"{over.verdict}: {over.detail}") from None

    def _trial(self, outcome: Outcome) -> Trial:
        """A trial in a child that has loaded the submission; TrialOver where there is none."""
        if self._import_failure is not None:
            raise self._import_failure
        if self._child is None or not self._loaded:
            self._load(outcome)
        return Trial(self._child, self._limits, self._progress, outcome)

    def _load(self, outcome: Outcome) -> None:
        self._progress("start")
        try:
            self.start()
        except OSError as error:
            text = f"the judge could not start a process: {error}"
            raise TrialOver(Verdict.NOT_RUN, text) from None
        trial = Trial(self._child, self._limits, self._progress, outcome)
        if self._greeting is None:
            with trial.phase("start", self._limits.start):
                self._greeting = self._child.reply(self._limits.start)
        if not isinstance(self._greeting, Ready):
            raise TrialOver(Verdict.CRASH, f"the child did not start: {self._greeting}")
        try:
            trial.ask(Load(), Loaded, "import", self._limits.load)
        except TrialOver as failure:
            self._import_failure = failure
            raise
        self._loaded = True
