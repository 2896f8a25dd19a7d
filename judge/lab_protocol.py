"""The lab's own protocol: the same inputs at every call, timed by the child alone."""

from __future__ import annotations

import struct
from collections.abc import Callable

from judge.audit import Answer, Answers
from judge.case import Case
from judge.child.protocol import Ran, Run
from judge.repetitions import UNTIMED, Repetitions
from judge.trial import Trial, TrialOver, usable_timing
from judge.verdict import Verdict

_CLOCK_MARGIN = 1.05  # two clocks, one of them the GPU's


def run_lab_protocol(
    trial: Trial,
    case: Case,
    count: Repetitions,
    answers: Answers,
    inputs: dict[str, str],
    beside: Callable[[int], None] | None = None,
) -> None:
    """Let the child run its loop, then judge the first and the last result.

    inputs: digests that the inputs keep. beside: as `run_loop` takes it. Timing and findings go to
    the trial's outcome. Raises TrialOver.
    """
    repetitions = count if case.timed else UNTIMED
    samples = run_loop(trial, case, repetitions, answers.fixed, inputs, beside)
    if case.timed:
        trial.outcome.timing = usable_timing(samples)


def run_loop(
    trial: Trial,
    case: Case,
    count: Repetitions,
    answer: Answer,
    inputs: dict[str, str],
    beside: Callable[[int], None] | None = None,
) -> list[float]:
    """Milliseconds of calls in the lab's loop, whose first and last result are right.

    answer: what calls with the inputs' contents return; inputs: digests of these. beside: called
    with 0 and 1 before the two halves of the loop, so that something else is timed in turns with
    it. Raises TrialOver.
    """
    half = count.repetitions - count.repetitions // 2
    blocks = [half, count.repetitions - half] if beside is not None else [count.repetitions]
    samples: list[float] = []
    spent_s = 0.0
    for number, calls in enumerate(blocks):
        if beside is not None:
            beside(number)
        if calls:
            samples += loop_samples(trial, Repetitions(count.warmup, calls), spent_s)
            spent_s += trial.asked_s
        if number == 0:
            trial.collect("first", "first timed call", case, answer, inputs)
    trial.collect("last", "last timed call", case, answer, inputs)
    return samples


def loop_samples(trial: Trial, count: Repetitions, spent_s: float = 0.0) -> list[float]:
    """Milliseconds of calls in one loop, whose results nobody looks at. Raises TrialOver.

    spent_s: seconds that earlier loops took of the limit.
    """
    limit_s = trial.limits.run
    request = Run(count.warmup, count.repetitions)
    trial.ask(request, Ran, "run", limit_s, limit_s - spent_s)
    wall_ms = trial.asked_s * 1e3
    samples = list(struct.unpack(f"={count.repetitions}d", trial.take(8 * count.repetitions)))
    usable_timing(samples)
    if sum(samples) > wall_ms * _CLOCK_MARGIN:
        raise TrialOver(
            Verdict.CHEAT,
            f"claimed {sum(samples):.6g} ms of calls in a run that took {wall_ms:.6g} ms",
        )
    return samples
