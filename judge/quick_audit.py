"""Audits of the quick repetitions: what a submission skips, it skips to be quick.

Which repetitions a submission leaves undone nobody can foresee, and a few audits at random miss a
submission that leaves half of them undone often enough. But the claim of a repetition is known
before its result is asked for, and those left undone are the quick ones.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from judge.audit import Answers
from judge.case import Case
from judge.record import Audit
from judge.trial import Fetched, Trial

_CLAIMS_FIRST = 4


@dataclass(frozen=True)
class _Kept:
    """A result of a repetition, and the digest that was given before it was asked for."""

    label: str
    seed: int
    digest: str
    fetched: Fetched


class QuickCalls:
    """Keeps the results of some of the quick repetitions, each of them as likely as another.

    The quickest are not more suspect: where some times are forged, those need not be the calls
    that were left undone. wanted: how many are kept, to be compared when the run is over.
    """

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._quick = 0
        self._kept: list[_Kept] = []
        self._chance = random.SystemRandom()

    def consider(
        self, trial: Trial, case: Case, label: str, seed: int, digest: str, claims: Sequence[float]
    ) -> None:
        """Fetch the result of a repetition, the last of `claims` (ms), if it is quick and drawn.

        Quick is what took no longer than the median until now. Of n quick ones each is kept with
        probability wanted / n (reservoir sampling, so that few results are fetched and fewer held).
        Raises TrialOver where it cannot be fetched.
        """
        if len(claims) <= _CLAIMS_FIRST or claims[-1] > statistics.median(claims):
            return
        place = self._quick
        self._quick += 1
        if place >= self._wanted:
            place = self._chance.randrange(self._quick)
        if place < self._wanted:
            fetched = trial.fetch("last", label, case)
            self._kept[place : place + 1] = [_Kept(label, seed, digest, fetched)]

    def audit(self, trial: Trial, answers: Answers) -> None:
        """Compare what was kept with the reference. Raises TrialOver where a result is wrong."""
        for kept in self._kept:
            answer = answers.later(kept.seed)
            inputs = answer.input_digests
            finding = trial.compare(kept.fetched, kept.label, answer, inputs, kept.digest)
            trial.outcome.audits.append(
                Audit(kept.label, kept.seed, None, answer.tolerance, finding.errors)
            )
