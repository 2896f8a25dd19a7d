"""The protocol for hostile code: new contents at every call, audits, and the judge's own clock."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol as Interface

from judge.audit import Answer, Answers, fresh_seed
from judge.case import Case
from judge.child.protocol import Repeat, Repeated
from judge.quick_audit import QuickCalls
from judge.record import Audit
from judge.repetitions import UNTIMED, Repetitions
from judge.trial import Trial, TrialOver, usable_timing
from judge.verdict import Verdict
from judge.witness import Allowance, Pair, Repetition, weigh


class Null(Interface):
    """The submission that does nothing, in a child of its own, prepared for the same case."""

    def repeat(self) -> Repetition:
        """One repetition of it. Raises ChildError."""


@dataclass(frozen=True)
class Terms:
    """What a timed case's times are held against.

    floor_ms: the least that a call can take on this device, None where that is not known.
    beside: called before every timed repetition, so that something else is timed in turns with it.
    """

    null: Null
    allowance: Allowance
    floor_ms: float | None
    beside: Callable[[], None] | None = None


_AUDITED_COLD_CALLS = 1


@dataclass(frozen=True)
class Step:
    """One repetition to ask for. answer: where its result is audited; timed: whether it counts.

    warm: whether a call with the old contents comes first, where the device has such. paired:
    whether one of the null submission comes before it.
    """

    label: str
    timed: bool
    seed: int
    gate: str | None = None
    answer: Answer | None = None
    warm: bool = True
    paired: bool = False


def schedule(
    case: Case, count: Repetitions, answers: Answers, allowance: Allowance | None = None
) -> list[Step]:
    """The repetitions of a case, audits where nobody can foresee them and at the last timed one.

    allowance: says which are paired with one of the null submission. Where those are cold calls,
    they must agree with the others: a submission that skips the warming call could deny as much of
    the timed one. A case that is not timed is called twice more: with fresh contents, then with the
    fixed ones, whose result is judged.
    """
    if not case.timed:
        warmup = [Step("call with fresh contents", False, fresh_seed())] * UNTIMED.warmup
        fixed = answers.fixed
        return [*warmup, Step("call with the first contents again", False, fixed.seed, None, fixed)]
    chance = random.SystemRandom()
    *others, last = [answers.fixed, *answers.fresh]
    places = chance.sample(range(count.repetitions - 1), min(len(others), count.repetitions - 1))
    audited = dict(zip(places, others, strict=False)) | {count.repetitions - 1: last}
    steps = [Step(f"warm-up {n}", False, fresh_seed()) for n in range(1, count.warmup + 1)]
    for number in range(count.repetitions):
        answer = audited.get(number)
        seed = answer.seed if answer else fresh_seed()
        paired = allowance is not None and not allowance.cold and number < allowance.pairs
        label = f"repetition {number + 1}"
        steps.append(Step(label, True, seed, None, answer, paired=paired))
    if (answer := answers.surprise) is not None:
        step = Step(f"call with gate {answer.gate}", False, answer.seed, answer.gate, answer)
        steps.insert(chance.randrange(count.warmup, len(steps)), step)
    for number in range(allowance.pairs if allowance is not None and allowance.cold else 0):
        label = f"cold call {number + 1}"
        step = Step(label, False, fresh_seed(), warm=False, paired=True)
        steps.insert(chance.randrange(count.warmup, len(steps)), step)
    return steps


def run_strict_protocol(
    trial: Trial,
    case: Case,
    count: Repetitions,
    answers: Answers,
    inputs: dict[str, str],
    terms: Terms | None,
) -> None:
    """Ask for one repetition after the other, audit some, and weigh the claimed times.

    inputs: digests of the inputs at the fixed seed. terms: None where the case is not timed.
    Timing, audits and witness go to the trial's outcome. Raises TrialOver.
    """
    limit_s = trial.limits.run
    spent_s = 0.0
    seen: list[Repetition] = []
    pairs: list[Pair] = []
    allowance = terms.allowance if terms is not None else None
    quick = QuickCalls(answers.quick, count.repetitions)
    steps = schedule(case, count, answers, allowance)
    audited_cold = _some([step for step in steps if not step.warm], _AUDITED_COLD_CALLS)
    for step in steps:
        if step.timed and terms is not None and terms.beside is not None:
            terms.beside()
        null = terms.null.repeat() if step.paired else None
        request = Repeat(step.seed, step.gate, step.warm)
        reply = trial.ask(request, Repeated, "run", limit_s, left_s=limit_s - spent_s)
        spent_s += trial.answered_s
        if reply.problem:
            raise TrialOver(Verdict.BAD_RESULT, f"{step.label}: {reply.problem}")
        repetition = repetition_of(trial, reply)
        if step.timed:
            seen.append(repetition)
        if null is not None:
            pairs.append(Pair(repetition, null))
        if step.answer is not None:
            _audit(trial, case, step, answers, inputs, reply.digest)
        elif step in audited_cold:
            quick.keep(trial, case, step.label, step.seed, reply.digest)
        elif step.timed:
            claims = [one.claimed_ms for one in seen]
            quick.consider(trial, case, step.label, step.seed, reply.digest, claims)
    quick.audit(trial, answers)
    if terms is not None:
        timing = usable_timing([one.claimed_ms for one in seen])
        trial.outcome.witness, evidence = weigh(seen, pairs, terms.allowance, terms.floor_ms)
        if evidence:
            raise TrialOver(Verdict.CHEAT, evidence)
        trial.outcome.timing = timing


def repetition_of(trial: Trial, reply: Repeated) -> Repetition:
    """What the child says of a repetition beside what the judge's clock says."""
    return Repetition(reply.milliseconds, trial.answered_s * 1e3, reply.busy_us)


def _some(steps: list[Step], number: int) -> list[Step]:
    return random.SystemRandom().sample(steps, min(number, len(steps)))


def _audit(
    trial: Trial, case: Case, step: Step, answers: Answers, inputs: dict[str, str], digest: str
) -> None:
    answer = step.answer
    same = inputs if answer is answers.fixed else answer.input_digests
    finding = trial.collect("last", step.label, case, answer, same, digest)
    trial.outcome.audits.append(
        Audit(step.label, answer.seed, answer.gate, answer.tolerance, finding.errors)
    )
