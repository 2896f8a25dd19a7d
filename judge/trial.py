"""One case in one child: requests, their limits and phases, and results compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from judge.audit import Answer
from judge.case import Case
from judge.checking import Finding, as_tensors, check_result, result_sizes
from judge.child.errors import ChildError, ChildTimeout
from judge.child.process import Child
from judge.child.protocol import (
    Collect,
    Collected,
    Failed,
    ProtocolError,
    Repeat,
    Repeated,
    Reply,
    Request,
)
from judge.digest import result_digest
from judge.record import Audit, Timing, Witness
from judge.text import plain
from judge.timing import summarize
from judge.verdict import Verdict

_FIRST_CALLS_IN_ALL, _RUNS_IN_ALL = 3, 12


@dataclass(frozen=True)
class Limits:
    """Seconds that each phase of a case may take; run is --timeout."""

    start: float = 120.0
    load: float = 120.0
    prepare: float = 120.0
    first_call: float = 600.0
    run: float = 300.0
    collect: float = 120.0

    @property
    def whole(self) -> float:
        """Seconds that the cases of a submission may take in all; one under way may still end.

        Each phase of each case could else come close to its limit, and hold a lane for hours.
        """
        return _FIRST_CALLS_IN_ALL * self.first_call + _RUNS_IN_ALL * self.run


@dataclass
class Outcome:
    """What is known of a case so far."""

    verdict: Verdict = Verdict.PASS
    detail: str = ""
    findings: list[Finding] = field(default_factory=list)
    timing: Timing | None = None
    audits: list[Audit] = field(default_factory=list)
    witness: Witness | None = None
    repeated: bool = False
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Fetched:
    """Bytes of output and final_state, and digests of the inputs as they then were."""

    output: memoryview
    final_state: memoryview
    inputs: dict[str, str]


class TrialOver(Exception):
    """Ends the trial of a case with a verdict; detail is one plain line."""

    def __init__(self, verdict: Verdict, detail: str) -> None:
        super().__init__(detail)
        self.verdict = verdict
        self.detail = plain(detail)


class Trial:
    """Asks a child for the steps of one case. Every method raises TrialOver where one fails.

    progress is told the phase that begins. answered_s: seconds from sending the last request, for a
    repetition from handing over its seed, to having its reply, by the judge's clock. asked_s: with
    what came before the seed. forbidden: modules that the child has loaded against the rules, as
    far as it was seen when results were collected.
    """

    def __init__(
        self, child: Child, limits: Limits, progress: Callable[[str], None], outcome: Outcome
    ) -> None:
        self.limits = limits
        self.outcome = outcome
        self.answered_s = self.asked_s = 0.0
        self.forbidden: list[str] = []
        self._child = child
        self._progress = progress
        self._shown = ""

    def ask(
        self,
        request: Request,
        wanted: type[Reply],
        phase: str,
        limit_s: float,
        left_s: float | None = None,
        seed: int | None = None,
    ) -> Reply:
        """Send a request; its reply, if it is of the wanted type.

        limit_s: of the phase. left_s: what is left of it, where earlier requests took a part.
        seed: for a repetition, handed over when the child waits for it.
        """
        self._show(phase)
        with self.phase(phase, limit_s):
            left_s = limit_s if left_s is None else left_s
            asked = start = time.perf_counter()
            self._child.send(request, left_s)
            awaited = seed is not None and self._child.wait_until_seed_is_awaited(left_s)
            if awaited:
                start = time.perf_counter()
                self._child.hand_over(seed)
            reply = self._child.reply(left_s - (start - asked))
            ended = time.perf_counter()
            self.answered_s, self.asked_s = ended - start, ended - asked
        accepted = self.accept(reply, wanted, phase)
        if seed is not None and not awaited:
            raise TrialOver(Verdict.CHEAT, f"{phase}: answered before it had the seed")
        return accepted

    def repeat(
        self,
        seed: int,
        gate: str | None,
        phase: str,
        limit_s: float,
        left_s: float | None = None,
        *,
        rehearsed: bool,
        awake: bool = False,
    ) -> Repeated:
        """Ask for one repetition with the contents of a seed, as Repeat says."""
        request = Repeat(gate, rehearsed, awake)
        return self.ask(request, Repeated, phase, limit_s, left_s, seed)

    def accept(self, reply: Reply, wanted: type[Reply], phase: str) -> Reply:
        """The reply, if it is of the wanted type."""
        if isinstance(reply, Failed):
            verdict = _verdict_of_failure(reply, phase)
            prefix = "needs CUDA and there is none: " if verdict is Verdict.NOT_RUN else ""
            raise TrialOver(verdict, prefix + reply.error)
        if not isinstance(reply, wanted):
            raise TrialOver(Verdict.CRASH, f"answered {type(reply).__name__} during {phase}")
        return reply

    def pause(self, paused: bool) -> None:
        """Stop all that the child runs, or let it go on."""
        self._child.pause(paused)

    def take(self, size: int) -> memoryview:
        """The bytes that belong to the last reply, `size` of them."""
        with self.guarded("collect", self.limits.collect):
            (data,) = self._child.take([size])
        return data

    def collect(
        self,
        which: str,
        label: str,
        case: Case,
        answer: Answer,
        inputs: dict[str, str],
        committed: str = "",
    ) -> Finding:
        """Fetch a result and compare it with the answer; the finding of a result that is right.

        As `fetch` and `compare` say.
        """
        fetched = self.fetch(which, label, case)
        return self.compare(fetched, label, answer, inputs, committed)

    def fetch(self, which: str, label: str, case: Case) -> Fetched:
        """The bytes of a result. which: as in Collect. label: names the call in a detail."""
        limit_s = self.limits.collect
        collected = self.ask(Collect(which), Collected, "collect", limit_s)
        self.forbidden = collected.forbidden or self.forbidden
        if collected.replaced:
            names = plain(", ".join(collected.replaced))
            raise TrialOver(Verdict.CHEAT, f"{label}: found replaced: {names}")
        if collected.problem:
            raise TrialOver(Verdict.BAD_RESULT, f"{label}: {collected.problem}")
        with self.phase("collect", limit_s):
            output, state = self._child.take(result_sizes(case))
        return Fetched(output, state, collected.digests)

    def compare(
        self,
        fetched: Fetched,
        label: str,
        answer: Answer,
        inputs: dict[str, str],
        committed: str = "",
    ) -> Finding:
        """Compare a fetched result with the answer; the finding of a result that is right.

        inputs: digests that the inputs must have after the call. committed: the digest that the
        child gave of this result before it was asked for it, empty where it gave none.
        """
        self._show("check")
        with self.phase("check", self.limits.collect):
            actual = as_tensors(fetched.output, fetched.final_state, answer.expected)
            if committed and (digest := result_digest(*actual)) != committed:
                raise TrialOver(
                    Verdict.CHEAT,
                    f"{label}: claimed a result with digest {plain(committed, 16)} when the call "
                    f"ended, handed over one with {digest[:16]}",
                )
            finding = check_result(*actual, answer.expected, answer.tolerance)
        self.outcome.findings.append(finding)
        if finding.verdict is not Verdict.PASS:
            raise TrialOver(finding.verdict, f"{label}: {finding.detail}")
        changed = [name for name, digest in inputs.items() if fetched.inputs.get(name) != digest]
        if changed:
            names = ", ".join(changed)
            raise TrialOver(Verdict.WRONG, f"{label}: its input {names} was changed")
        return finding

    def _show(self, phase: str) -> None:
        if phase != self._shown:
            self._shown = phase
            self._progress(phase)

    @contextmanager
    def phase(self, phase: str, limit_s: float) -> Iterator[None]:
        """Add the seconds of a phase to the outcome; a child that fails in it ends the trial."""
        start = time.monotonic()
        key = phase.replace(" ", "_")
        try:
            with self.guarded(phase, limit_s):
                yield
        finally:
            spent = time.monotonic() - start
            seconds = self.outcome.seconds
            seconds[key] = round(seconds.get(key, 0.0) + spent, 6)

    @contextmanager
    def guarded(self, phase: str, limit_s: float) -> Iterator[None]:
        """Turn a child's failure to answer into a verdict."""
        try:
            yield
        except ChildTimeout:
            text = f"{phase}: no answer within {limit_s:g} s"
            raise TrialOver(Verdict.TIMEOUT, text) from None
        except (ChildError, ProtocolError) as error:
            raise TrialOver(Verdict.CRASH, f"{phase}: {error}") from None


def usable_timing(samples_ms: list[float]) -> Timing:
    """Statistics of the samples that a child reported; TrialOver where they are no call's times."""
    try:
        return summarize(samples_ms)
    except ValueError as error:
        text = f"claimed times that no call takes: {error}"
        raise TrialOver(Verdict.CHEAT, text) from None


def _verdict_of_failure(failure: Failed, phase: str) -> Verdict:
    if failure.needs_cuda:
        return Verdict.NOT_RUN
    if phase == "import":
        return Verdict.IMPORT_ERROR
    if failure.compiling and phase == "first call":
        return Verdict.COMPILE_ERROR
    return Verdict.CRASH
