"""The protocol for hostile code: new contents at every call, audits, and the judge's own clock."""

from __future__ import annotations

import random
from dataclasses import dataclass

from judge.audit import Answer, Answers, fresh_seed
from judge.case import Case
from judge.child.protocol import Repeat, Repeated
from judge.quick_audit import QuickCalls
from judge.record import Audit
from judge.repetitions import UNTIMED, Repetitions
from judge.trial import Trial, TrialOver, usable_timing
from judge.verdict import Verdict
from judge.witness import Allowance, Repetition, weigh


@dataclass(frozen=True)
class Terms:
    """What a timed case's times are held against.

    null: repetitions of a submission that does nothing. floor_ms: the least that a call can take
    on this device, None where that is not known.
    """

    null: list[Repetition]
    allowance: Allowance
    floor_ms: float | None


_COLD_CALLS = 12
_AUDITED_COLD_CALLS = 1


@dataclass(frozen=True)
class Step:
    """One repetition to ask for. answer: where its result is audited; timed: whether it counts.

    warm: whether a call with the old contents comes first, where the device has such.
    """

    label: str
    timed: bool
    seed: int
    gate: str | None = None
    answer: Answer | None = None
    warm: bool = True


def schedule(case: Case, count: Repetitions, answers: Answers, cold_calls: int = 0) -> list[Step]:
    """The repetitions of a case, audits where nobody can foresee them and at the last timed one.

    cold_calls: repetitions more without a call that warms the caches, some of them audited. They
    must agree with the others: a submission that skips that call could deny as much of the timed
    one. A case that is not timed is called twice more: with fresh contents, then with the fixed
    ones, whose result is judged.
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
        steps.append(Step(f"repetition {number + 1}", True, seed, None, answer))
    if (answer := answers.surprise) is not None:
        step = Step(f"call with gate {answer.gate}", False, answer.seed, answer.gate, answer)
        steps.insert(chance.randrange(count.warmup, len(steps)), step)
    for number in range(cold_calls):
        step = Step(f"cold call {number + 1}", False, fresh_seed(), warm=False)
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
    cold: list[Repetition] = []
    cold_calls = _COLD_CALLS if terms is not None and terms.allowance.calls > 1 else 0
    audited_cold = random.SystemRandom().sample(range(1, _COLD_CALLS + 1), _AUDITED_COLD_CALLS)
    quick = QuickCalls(answers.quick, count.repetitions)
    for step in schedule(case, count, answers, cold_calls):
        request = Repeat(step.seed, step.gate, step.warm)
        reply = trial.ask(request, Repeated, "run", limit_s, left_s=limit_s - spent_s)
        spent_s += trial.answered_s
        if reply.problem:
            raise TrialOver(Verdict.BAD_RESULT, f"{step.label}: {reply.problem}")
        if step.timed:
            seen.append(_repetition(trial, reply))
        if not step.warm:
            cold.append(_repetition(trial, reply))
            if len(cold) in audited_cold:
                quick.keep(trial, case, step.label, step.seed, reply.digest)
        if step.answer is not None:
            _audit(trial, case, step, answers, inputs, reply.digest)
        elif step.timed:
            claims = [one.claimed_ms for one in seen]
            quick.consider(trial, case, step.label, step.seed, reply.digest, claims)
    quick.audit(trial, answers)
    if terms is not None:
        timing = usable_timing([one.claimed_ms for one in seen])
        trial.outcome.witness, evidence = weigh(
            seen, terms.null, terms.allowance, terms.floor_ms, cold
        )
        if evidence:
            raise TrialOver(Verdict.CHEAT, evidence)
        trial.outcome.timing = timing


def time_null(trial: Trial, case: Case, count: Repetitions) -> list[Repetition]:
    """Repetitions of a submission that does nothing, whose results nobody looks at."""
    seen = []
    for number in range(count.warmup + count.repetitions):
        reply = trial.ask(Repeat(fresh_seed(), None), Repeated, "null run", trial.limits.run)
        if number >= count.warmup:
            seen.append(_repetition(trial, reply))
    return seen


def _repetition(trial: Trial, reply: Repeated) -> Repetition:
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
