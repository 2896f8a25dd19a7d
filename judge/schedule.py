"""Which repetitions of a case the strict protocol asks for, and which of them are audited."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from judge.audit import Answer, Answers, fresh_seed
from judge.case import Case
from judge.repetitions import Repetitions
from judge.witness import Allowance


@dataclass(frozen=True)
class Step:
    """One repetition to ask for.

    timed: whether it counts. answer: what its result is compared with at once. late: whether its
    result is fetched and may be compared when the run is over. paired: whether a repetition of the
    null submission comes first.
    """

    label: str
    timed: bool
    seed: int
    gate: str | None = None
    answer: Answer | None = None
    late: bool = False
    paired: bool = False


def schedule(
    case: Case, count: Repetitions, answers: Answers, allowance: Allowance | None = None
) -> list[Step]:
    """The repetitions of a case, audits where nobody can foresee them and at the last timed one.

    allowance: says how many timed repetitions are paired with one of the null submission.
    """
    if not case.timed:
        return _untimed(answers)
    chance = random.SystemRandom()
    steps = _timed(count, answers, chance)
    if allowance is not None:
        _pair(steps, allowance.pairs, answers.paired, chance)
    if (answer := answers.surprise) is not None:
        step = Step(f"call with gate {answer.gate}", False, answer.seed, answer.gate, answer)
        steps.insert(chance.randrange(len(steps)), step)
    warm_ups = range(1, count.warmup + 1)
    return [Step(f"warm-up {n}", False, fresh_seed()) for n in warm_ups] + steps


def _pair(steps: list[Step], pairs: int, audited: int, chance: random.Random) -> None:
    """Pair some with the null submission, and audit some of these whatever they claim.

    A submission that behaves itself only where its neighbour was just heard must then have its
    results right there too.
    """
    paired = chance.sample(range(len(steps)), min(pairs, len(steps)))
    for place in paired:
        steps[place] = replace(steps[place], paired=True)
    free = [place for place in paired if steps[place].answer is None and not steps[place].late]
    for place in free[:audited]:
        steps[place] = replace(steps[place], late=True)


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
