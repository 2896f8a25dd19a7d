"""Which repetitions of a case the strict protocol asks for, and which of them are audited."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from judge.audit import Answer, Answers, fresh_seed
from judge.case import Case
from judge.repetitions import Repetitions
from judge.witness import Allowance

_AUDITED_COLD_CALLS = 2


@dataclass(frozen=True)
class Step:
    """One repetition to ask for.

    timed: whether it counts. answer: what its result is compared with at once. late: whether its
    result is fetched and may be compared when the run is over. warm: whether a call with the old
    contents comes first, where the device has such. paired: whether one of the null submission
    comes before it.
    """

    label: str
    timed: bool
    seed: int
    gate: str | None = None
    answer: Answer | None = None
    late: bool = False
    warm: bool = True
    paired: bool = False


def schedule(
    case: Case, count: Repetitions, answers: Answers, allowance: Allowance | None = None
) -> list[Step]:
    """The repetitions of a case, audits where nobody can foresee them and at the last timed one.

    allowance: says which are paired with one of the null submission. Where those are cold calls,
    they must agree with the others: a submission that skips the warming call could deny as much of
    the timed one.
    """
    if not case.timed:
        return _untimed(answers)
    chance = random.SystemRandom()
    steps = _timed(count, answers, chance)
    if allowance is not None and not allowance.cold:
        steps[: allowance.pairs] = [replace(one, paired=True) for one in steps[: allowance.pairs]]
    others = []
    if (answer := answers.surprise) is not None:
        label = f"call with gate {answer.gate}"
        others.append(Step(label, False, answer.seed, answer.gate, answer))
    if allowance is not None and allowance.cold:
        late = chance.sample(range(allowance.pairs), min(_AUDITED_COLD_CALLS, allowance.pairs))
        others += [
            Step(f"cold call {n + 1}", False, fresh_seed(), late=n in late, warm=False, paired=True)
            for n in range(allowance.pairs)
        ]
    for step in others:
        steps.insert(chance.randrange(len(steps)), step)
    return [Step(f"warm-up {n + 1}", False, fresh_seed()) for n in range(count.warmup)] + steps


def _timed(count: Repetitions, answers: Answers, chance: random.Random) -> list[Step]:
    *others, last = [answers.fixed, *answers.fresh]
    before_last = range(count.repetitions - 1)
    wanted = min(len(others) + answers.quick, len(before_last))
    places = chance.sample(before_last, wanted)
    audited = dict(zip(places, others, strict=False)) | {count.repetitions - 1: last}
    late = places[len(others) :]
    return [
        Step(
            f"repetition {n + 1}",
            True,
            audited[n].seed if n in audited else fresh_seed(),
            answer=audited.get(n),
            late=n in late,
        )
        for n in range(count.repetitions)
    ]


def _untimed(answers: Answers) -> list[Step]:
    """Two calls more: with fresh contents, then with the fixed ones again."""
    fresh = answers.fresh[0] if answers.fresh else None
    seed = fresh.seed if fresh else fresh_seed()
    fixed = answers.fixed
    return [
        Step("call with fresh contents", False, seed, answer=fresh),
        Step("call with the first contents again", False, fixed.seed, answer=fixed),
    ]
