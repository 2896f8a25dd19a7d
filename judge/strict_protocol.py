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
    if beside is not None and terms is not None and not terms.looped:
        beside(0)
    try:
        _measure_all(trial, case, count, answers, inputs, terms, beside)
    except ClocksDiffer:
        trial.outcome.repeated = True
        _measure_all(trial, case, count, answers, inputs, terms, beside)


def _measure_all(
    trial: Trial,
    case: Case,
    count: Repetitions,
    answers: Answers,
    inputs: dict[str, str],
    terms: Terms | None,
    beside: Callable[[int], None] | None,
) -> None:
    trial.outcome.timing = None
    last = _measure(trial, case, count, answers, inputs, terms)
    if terms is not None and terms.looped:
        same = _digests(last, answers, inputs)
        samples = run_loop(trial, case, count, last, same, beside)
        _charge(trial, samples, terms)


def _charge(trial: Trial, samples: list[float], terms: Terms) -> None:
    """Let the loop's times count, with what is to be added to them."""
    witness = trial.outcome.witness
    loop_ms = statistics.median(samples)
    if terms.floor_ms is not None and loop_ms < terms.floor_ms:
        raise ClocksDiffer(Verdict.CHEAT, below_floor(loop_ms, terms.floor_ms))
    charged_ms = charge_ms(witness.claimed_ms, loop_ms, terms.allowance)
    trial.outcome.witness = replace(witness, loop_ms=loop_ms, charged_ms=charged_ms)
    trial.outcome.timing = usable_timing([sample + charged_ms for sample in samples])


def _measure(
    trial: Trial,
    case: Case,
    count: Repetitions,
    answers: Answers,
    inputs: dict[str, str],
    terms: Terms | None,
) -> Answer:
    """What the last repetition had to return."""
    limit_s = trial.limits.run
    spent_s = 0.0
    seen: list[Repetition] = []
    pairs: list[Pair] = []
    allowance = terms.allowance if terms is not None else None
    late = LateAudits()
    last_ms = 0.0
    for step in schedule(case, count, answers, allowance):
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
        if not terms.looped:
            trial.outcome.timing = timing
    return step.answer


def _weigh(trial: Trial, seen: list[Repetition], pairs: list[Pair], terms: Terms) -> None:
    if noise := unquiet([pair.null for pair in pairs], terms.quiet_ms):
        raise ClocksDiffer(Verdict.NOT_RUN, noise)
    trial.outcome.witness, evidence = weigh(seen, pairs, terms.allowance, terms.floor_ms)
    if evidence:
        raise ClocksDiffer(Verdict.CHEAT, evidence)


def _null_repetition(trial: Trial, terms: Terms) -> Repetition:
    """One of the null submission, while the other child is stopped and cannot slow it down."""
    trial.pause(True)
    try:
        return terms.null.repeat()
    except ChildError as error:
        text = f"the submission that does nothing failed: {error}"
        raise TrialOver(Verdict.NOT_RUN, text) from None
    finally:
        trial.pause(False)


def repetition_of(trial: Trial, reply: Repeated) -> Repetition:
    """What the child says of a repetition beside what the judge's clock says."""
    return Repetition(reply.milliseconds, trial.answered_s * 1e3, reply.busy_us)


def _audit(
    trial: Trial, case: Case, step: Step, answers: Answers, inputs: dict[str, str], digest: str
) -> None:
    answer = step.answer
    same = _digests(answer, answers, inputs)
    finding = trial.collect("last", step.label, case, answer, same, digest)
    trial.outcome.audits.append(
        Audit(step.label, answer.seed, answer.gate, answer.tolerance, finding.errors)
    )


def _digests(answer: Answer, answers: Answers, inputs: dict[str, str]) -> dict[str, str]:
    return inputs if answer is answers.fixed else answer.input_digests
