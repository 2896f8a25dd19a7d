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

_CLAIMS_FIRST, _CLAIMS_LAST = 4, 3


@dataclass(frozen=True)
class _Kept:
    """A result of a repetition, and the digest that was given before it was asked for."""

    label: str
    seed: int
    digest: str
    fetched: Fetched


class QuickCalls:
    """Keeps the results of some quick repetitions, of which nobody can foresee the places.

    wanted: how many are kept, to be compared when the run is over. repetitions: of the run.
    """

    def __init__(self, wanted: int, repetitions: int) -> None:
        chance = random.SystemRandom()
        places = range(_CLAIMS_FIRST, repetitions - _CLAIMS_LAST)
        self._due = sorted(chance.sample(places, min(wanted, len(places))))
        self._kept: list[_Kept] = []

    def consider(
        self, trial: Trial, case: Case, label: str, seed: int, digest: str, claims: Sequence[float]
    ) -> None:
        """Fetch the result of a repetition, the last of `claims` (ms), if one is due and it quick.

        Quick is what took no longer than the median until now. Raises TrialOver where it cannot be
        fetched.
        """
        due = bool(self._due) and len(claims) > self._due[0]
        if due and claims[-1] <= statistics.median(claims):
            del self._due[0]
            self.keep(trial, case, label, seed, digest)

    def keep(self, trial: Trial, case: Case, label: str, seed: int, digest: str) -> None:
        """Fetch the result of the last repetition. Raises TrialOver where it cannot be fetched."""
        self._kept.append(_Kept(label, seed, digest, trial.fetch("last", label, case)))

    def audit(self, trial: Trial, answers: Answers) -> None:
        """Compare what was kept with the reference. Raises TrialOver where a result is wrong."""
        if not self._kept:
            return
        later = answers.later([kept.seed for kept in self._kept])
        for kept, answer in zip(self._kept, later, strict=True):
            inputs = answer.input_digests
            finding = trial.compare(kept.fetched, kept.label, answer, inputs, kept.digest)
            trial.outcome.audits.append(
                Audit(kept.label, kept.seed, None, answer.tolerance, finding.errors)
            )
