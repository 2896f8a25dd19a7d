"""The protocol for hostile code: new contents at every call, audits, and the judge's own clock.

On CUDA the lab's loop follows, whose times count: new contents are made by other kernels and take
their time, and a launch behind them finds the processor's caches cold, which costs what no repeated
call shows, more on a machine whose cores others use too. Where the calls with new contents took
longer than that explains, the difference is added to the loop's times.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol as Interface

from judge.audit import Answer, Answers
from judge.case import Case
from judge.child.errors import ChildError
from judge.child.protocol import Repeated
from judge.lab_protocol import run_loop
from judge.late_audit import LateAudits
from judge.record import Audit
from judge.repetitions import Repetitions
from judge.schedule import Step, schedule
from judge.trial import Trial, TrialOver, usable_timing
from judge.verdict import Verdict
from judge.witness import (
    Allowance,
    Pair,
    Repetition,
    below_floor,
    charge_ms,
    unquiet,
    weigh,
)


class Null(Interface):
    """The submission that does nothing, in a child of its own, prepared for the same case."""

    def repeat(self) -> Repetition:
        """One repetition of it. Raises ChildError."""


@dataclass(frozen=True)
class Terms:
    """What a timed case's times are held against.

    floor_ms: the least that a call can take on this device. quiet_ms: what a repetition of the null
    submission takes beside its call while no submission has run. None where they are not known.
    rehearsed: whether a call with the old contents comes before each but those that follow a slow
    one: on CUDA, where a launch would else be timed with colder caches. The seed of the new
    contents is handed over when that call has ended; then the judge's clock starts.
    looped: whether the lab's loop follows: on CUDA.
    """

    null: Null
    allowance: Allowance
    floor_ms: float | None = None
    quiet_ms: float | None = None
    rehearsed: bool = False
    looped: bool = False


class ClocksDiffer(TrialOver):
    """What was measured says that times are not to be believed; nothing else was wrong."""


_SLOW_MS = 2.0
"""Calls that take longer need no rehearsal; the last claim tells."""


def run_strict_protocol(
    trial: Trial,
    case: Case,
    count: Repetitions,
    answers: Answers,
    inputs: dict[str, str],
    terms: Terms | None,
    beside: Callable[[int], None] | None = None,
) -> None:
    """Ask for one repetition after the other, audit some, and weigh the claimed times.

    Where the clocks differ, all is measured once more: what another program does for a moment
    accuses nobody. inputs: digests of the inputs at the fixed seed. terms: None where the case is
    not timed. beside: as `run_loop` takes it; where no loop follows, once. Timing, audits
    and witness go to the trial's outcome. Raises TrialOver.
    """
    measurement = _Measurement(trial, case, count, answers, inputs, terms, beside)
    if beside is not None and terms is not None and not terms.looped:
        beside(0)
    try:
        measurement.make()
    except ClocksDiffer:
        trial.outcome.repeated = True
        measurement.make()


def repetition_of(trial: Trial, reply: Repeated) -> Repetition:
    """What the child says of a repetition beside what the judge's clock says."""
    return Repetition(reply.milliseconds, trial.answered_s * 1e3, reply.busy_us)


@dataclass(frozen=True)
class _Measurement:
    """One case of one submission, with all that it is measured by."""

    trial: Trial
    case: Case
    count: Repetitions
    answers: Answers
    inputs: dict[str, str]
    terms: Terms | None
    beside: Callable[[int], None] | None

    def make(self) -> None:
        """Repetitions with new contents, then the loop; what an earlier time came to is forgotten.

        Raises TrialOver.
        """
        self.trial.outcome.timing = None
        seen, pairs, last = self._repetitions()
        if self.terms is None:
            return
        self._weigh(seen, pairs)
        claims = [one.claimed_ms for one in seen]
        if self.terms.looped:
            samples = run_loop(
                *(self.trial, self.case, self.count, last), self._digests(last), self.beside
            )
            claims = self._charged(samples)
        self.trial.outcome.timing = usable_timing(claims)

    def _repetitions(self) -> tuple[list[Repetition], list[Pair], Answer]:
        """The timed ones, those paired with the null submission, and what the last one returned."""
        trial, terms = self.trial, self.terms
        limit_s = trial.limits.run
        spent_s = last_ms = 0.0
        seen: list[Repetition] = []
        pairs: list[Pair] = []
        late = LateAudits()
        allowance = terms.allowance if terms is not None else None
        steps = schedule(self.case, self.count, self.answers, allowance)
        for step in steps:
            null = self._null_repetition() if step.paired else None
            rehearsed = terms is not None and terms.rehearsed and last_ms <= _SLOW_MS
            left_s = limit_s - spent_s
            reply = trial.repeat(
                *(step.seed, step.gate, "run", limit_s, left_s), rehearsed=rehearsed, awake=True
            )
            spent_s += trial.asked_s
            if reply.problem:
                raise TrialOver(Verdict.BAD_RESULT, f"{step.label}: {reply.problem}")
            repetition = repetition_of(trial, reply)
            last_ms = repetition.claimed_ms
            if step.timed:
                seen.append(repetition)
            if null is not None:
                pairs.append(Pair(repetition, null))
            if step.answer is not None:
                self._audit(step, step.answer, reply.digest)
            elif step.late:
                late.keep(trial, self.case, step, reply.digest, repetition.claimed_ms)
        if seen:
            usable_timing([one.claimed_ms for one in seen])
            late.audit(trial, self.answers, statistics.median(one.claimed_ms for one in seen))
        return seen, pairs, steps[-1].answer

    def _null_repetition(self) -> Repetition:
        """One of the null submission, while the other child is stopped and cannot slow it down."""
        self.trial.pause(True)
        try:
            return self.terms.null.repeat()
        except ChildError as error:
            text = f"the submission that does nothing failed: {error}"
            raise TrialOver(Verdict.NOT_RUN, text) from None
        finally:
            self.trial.pause(False)

    def _audit(self, step: Step, answer: Answer, digest: str) -> None:
        finding = self.trial.collect(
            "last", step.label, self.case, answer, self._digests(answer), digest
        )
        self.trial.outcome.audits.append(
            Audit(step.label, answer.seed, answer.gate, answer.tolerance, finding.errors)
        )

    def _digests(self, answer: Answer) -> dict[str, str]:
        return self.inputs if answer is self.answers.fixed else answer.input_digests

    def _weigh(self, seen: list[Repetition], pairs: list[Pair]) -> None:
        terms = self.terms
        if noise := unquiet([pair.null for pair in pairs], terms.quiet_ms):
            raise ClocksDiffer(Verdict.NOT_RUN, noise)
        self.trial.outcome.witness, evidence = weigh(seen, pairs, terms.allowance, terms.floor_ms)
        if evidence:
            raise ClocksDiffer(Verdict.CHEAT, evidence)

    def _charged(self, samples: list[float]) -> list[float]:
        """The loop's samples, with what is to be added to each."""
        terms, outcome = self.terms, self.trial.outcome
        loop_ms = statistics.median(samples)
        if terms.floor_ms is not None and loop_ms < terms.floor_ms:
            raise ClocksDiffer(Verdict.CHEAT, below_floor(loop_ms, terms.floor_ms))
        charged_ms = charge_ms(outcome.witness.claimed_ms, loop_ms, terms.allowance)
        outcome.witness = replace(outcome.witness, loop_ms=loop_ms, charged_ms=charged_ms)
        return [sample + charged_ms for sample in samples]
