"""The protocol for hostile code: new contents at every call, audits, and the judge's own clock."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol as Interface

from judge.audit import Answers
from judge.case import Case
from judge.child.protocol import Repeated
from judge.late_audit import LateAudits
from judge.record import Audit
from judge.repetitions import Repetitions
from judge.schedule import Step, schedule
from judge.trial import Trial, TrialOver, usable_timing
from judge.verdict import Verdict
from judge.witness import Allowance, Pair, Repetition, unquiet, weigh


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
    one: on CUDA, where a launch would else be timed with cold caches, tens of microseconds later
    than in the lab's loop. The seed of the new contents is handed over when that call has ended;
    then the judge's clock starts.
    beside: called before every timed repetition, so that something else is timed in turns with it.
    """

    null: Null
    allowance: Allowance
    floor_ms: float | None = None
    quiet_ms: float | None = None
    rehearsed: bool = False
    beside: Callable[[], None] | None = None


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
) -> None:
    """Ask for one repetition after the other, audit some, and weigh the claimed times.

    Where the clocks differ, all is measured once more: what another program does for a moment
    accuses nobody. inputs: digests of the inputs at the fixed seed. terms: None where the case is
    not timed. Timing, audits and witness go to the trial's outcome. Raises TrialOver.
    """
    try:
        _measure(trial, case, count, answers, inputs, terms)
    except ClocksDiffer:
        trial.outcome.repeated = True
        _measure(trial, case, count, answers, inputs, terms)


def _measure(
    trial: Trial,
    case: Case,
    count: Repetitions,
    answers: Answers,
    inputs: dict[str, str],
    terms: Terms | None,
) -> None:
    limit_s = trial.limits.run
    spent_s = 0.0
    seen: list[Repetition] = []
    pairs: list[Pair] = []
    allowance = terms.allowance if terms is not None else None
    late = LateAudits()
    last_ms = 0.0
    for step in schedule(case, count, answers, allowance):
        if step.timed and terms is not None and terms.beside is not None:
            terms.beside()
        null = _null_repetition(trial, terms) if step.paired else None
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
            _audit(trial, case, step, answers, inputs, reply.digest)
        elif step.late:
            late.keep(trial, case, step, reply.digest, repetition.claimed_ms)
    if terms is not None:
        timing = usable_timing([one.claimed_ms for one in seen])
        late.audit(trial, answers, statistics.median(one.claimed_ms for one in seen))
        _weigh(trial, seen, pairs, terms)
        trial.outcome.timing = timing


def _weigh(trial: Trial, seen: list[Repetition], pairs: list[Pair], terms: Terms) -> None:
    if noise := unquiet(pairs, terms.quiet_ms):
        raise ClocksDiffer(Verdict.NOT_RUN, noise)
    trial.outcome.witness, evidence = weigh(seen, pairs, terms.allowance, terms.floor_ms)
    if evidence:
        raise ClocksDiffer(Verdict.CHEAT, evidence)


def _null_repetition(trial: Trial, terms: Terms) -> Repetition:
    """One of the null submission, while the other child is stopped and cannot slow it down."""
    trial.pause(True)
    try:
        return terms.null.repeat()
    finally:
        trial.pause(False)


def repetition_of(trial: Trial, reply: Repeated) -> Repetition:
    """What the child says of a repetition beside what the judge's clock says."""
    return Repetition(reply.milliseconds, trial.answered_s * 1e3, reply.busy_us)


def _audit(
    trial: Trial, case: Case, step: Step, answers: Answers, inputs: dict[str, str], digest: str
) -> None:
    answer = step.answer
    same = inputs if answer is answers.fixed else answer.input_digests
    finding = trial.collect("last", step.label, case, answer, same, digest)
    trial.outcome.audits.append(
        Audit(step.label, answer.seed, answer.gate, answer.tolerance, finding.errors)
    )
