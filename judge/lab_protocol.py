"""The lab's own protocol: the same inputs at every call, timed by the child alone."""

from __future__ import annotations

import struct
import time

from judge.audit import Answers
from judge.case import Case
from judge.child.protocol import Ran, Run
from judge.repetitions import UNTIMED, Repetitions
from judge.trial import Trial, TrialOver, usable_timing
from judge.verdict import Verdict

_CLOCK_MARGIN = 1.05  # two clocks, one of them the GPU's


def run_lab_protocol(
    trial: Trial, case: Case, count: Repetitions, answers: Answers, inputs: dict[str, str]
) -> None:
    """Let the child run its loop, then judge the first and the last timed result.

    inputs: digests that the inputs keep. Timing and findings go to the trial's outcome. Raises
    TrialOver.
    """
    repetitions = count if case.timed else UNTIMED
    limit_s = trial.limits.run
    start = time.monotonic()
    trial.ask(Run(repetitions.warmup, repetitions.repetitions), Ran, "run", limit_s)
    wall_ms = (time.monotonic() - start) * 1e3
    data = trial.take(8 * repetitions.repetitions)
    if case.timed:
        samples = list(struct.unpack(f"={repetitions.repetitions}d", data))
        timing = usable_timing(samples)
        if sum(samples) > wall_ms * _CLOCK_MARGIN:
            raise TrialOver(
                Verdict.CHEAT,
                f"claimed {sum(samples):.6g} ms of calls in a run that took {wall_ms:.6g} ms",
            )
        trial.outcome.timing = timing
    for which in ("first", "last"):
        label = f"{which} timed call"
        trial.collect(which, label, case, answers.fixed, inputs)
