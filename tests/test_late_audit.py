"""Which results are fetched at once and compared when the run is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from judge.audit import Answer, Answers
from judge.checking import Expected, Finding
from judge.late_audit import LateAudits
from judge.repetitions import Repetitions
from judge.schedule import Step, schedule
from judge.trial import Fetched, Outcome
from judge.verdict import Verdict
from tests.trial import verdict_cases

NOTHING = Expected(None, None)
CASE = verdict_cases()[0]


class RecordingTrial:
    """Notes what was fetched and compared."""

    def __init__(self) -> None:
        self.outcome = Outcome()
        self.fetched: list[str] = []
        self.compared: list[tuple[str, int, str]] = []

    def fetch(self, which: str, label: str, case: object) -> Fetched:
        assert which == "last"
        self.fetched.append(label)
        return Fetched(memoryview(label.encode()), memoryview(b""), {})

    def compare(
        self, fetched: Fetched, label: str, answer: Answer, inputs: dict[str, str], committed: str
    ) -> Finding:
        assert fetched.output == label.encode()
        self.compared.append((label, answer.seed, committed))
        return Finding(Verdict.PASS, "", [])


def answer(seed: int) -> Answer:
    return Answer(seed, None, NOTHING, 5e-3, {})


def later(seeds: Sequence[int]) -> list[Answer]:
    return [answer(seed) for seed in seeds]


def answers(quick: int) -> Answers:
    return Answers(answer(42), (answer(1), answer(2)), quick=quick, later=later)


def late_steps(quick: int, repetitions: int) -> list[Step]:
    steps = schedule(CASE, Repetitions(2, repetitions), answers(quick))
    return [step for step in steps if step.late]


def test_timed_results_are_compared_where_they_claim_no_more_than_the_median() -> None:
    trial, late = RecordingTrial(), LateAudits()
    for number, claimed in enumerate([1.0, 9.0, 2.0]):
        step = Step(f"repetition {number}", True, 100 + number)
        late.keep(trial, CASE, step, f"d{number}", claimed)
    late.audit(trial, answers(3), median_ms=2.0)
    assert trial.fetched == ["repetition 0", "repetition 1", "repetition 2"]
    assert trial.compared == [("repetition 0", 100, "d0"), ("repetition 2", 102, "d2")]
    assert [audit.seed for audit in trial.outcome.audits] == [100, 102]


def test_paired_results_are_compared_whatever_they_claim() -> None:
    trial, late = RecordingTrial(), LateAudits()
    late.keep(trial, CASE, Step("repetition 3", True, 7, paired=True), "d", 99.0)
    late.audit(trial, answers(0), median_ms=1.0)
    assert trial.compared == [("repetition 3", 7, "d")]


def test_nothing_is_computed_where_nothing_was_kept() -> None:
    trial = RecordingTrial()
    LateAudits().audit(trial, Answers(answer(42)), median_ms=1.0)
    assert trial.compared == []


def test_late_places_are_any_but_the_last_and_none_that_is_audited_at_once() -> None:
    counts: Counter[str] = Counter()
    for _ in range(1000):
        steps = late_steps(quick=3, repetitions=20)
        assert len(steps) == 3
        assert all(step.timed and step.answer is None for step in steps)
        counts.update(step.label for step in steps)
    # three of nineteen places, each 1000 · 3 / 19 = 158 times, give or take 12
    assert sorted(counts) == sorted(f"repetition {number}" for number in range(1, 20))
    assert all(90 < count < 230 for count in counts.values())


def test_few_repetitions_leave_no_place_for_more() -> None:
    assert late_steps(quick=3, repetitions=3) == []
    assert len(late_steps(quick=3, repetitions=4)) == 1
    assert late_steps(quick=0, repetitions=100) == []
