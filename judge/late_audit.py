"""Results that are fetched at once and compared when the run is over.

Which repetitions a submission leaves undone nobody can foresee, and a few audits at random miss a
submission that leaves half of them undone often enough. So some more results are fetched, at places
that depend on nothing the submission does. Those whose claims turn out to be no longer than the
median, as a skipped call's must be to gain anything, are compared; those that were paired with the
null submission are compared whatever they claim.
"""

from __future__ import annotations

from dataclasses import dataclass

from judge.audit import Answers
from judge.case import Case
from judge.record import Audit
from judge.schedule import Step
from judge.trial import Fetched, Trial


@dataclass(frozen=True)
class _Kept:
    """A result of a repetition, and the digest that was given before it was asked for."""

    step: Step
    digest: str
    fetched: Fetched
    claimed_ms: float


class LateAudits:
    """The fetched results of one case."""

    def __init__(self) -> None:
        self._kept: list[_Kept] = []

    def keep(self, trial: Trial, case: Case, step: Step, digest: str, claimed_ms: float) -> None:
        """Fetch the result of the last repetition. Raises TrialOver where it cannot be fetched."""
        self._kept.append(_Kept(step, digest, trial.fetch("last", step.label, case), claimed_ms))

    def audit(self, trial: Trial, answers: Answers, median_ms: float) -> None:
        """Compare the paired results, and others that claim no more than the median.

        Raises TrialOver where a result is wrong.
        """
        due = [kept for kept in self._kept if kept.step.paired or kept.claimed_ms <= median_ms]
        if not due:
            return
        for kept, answer in zip(due, answers.later([one.step.seed for one in due]), strict=True):
            inputs = answer.input_digests
            label = kept.step.label
            finding = trial.compare(kept.fetched, label, answer, inputs, kept.digest)
            trial.outcome.audits.append(
                Audit(label, answer.seed, None, answer.tolerance, finding.errors)
            )
