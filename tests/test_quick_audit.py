"""Which repetitions are audited for being quick."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from judge.audit import Answer, Answers
from judge.checking import Expected, Finding
from judge.quick_audit import QuickCalls
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
        return Fetched(bytearray(label.encode()), bytearray(), {})

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


def audited(claims: list[float], wanted: int) -> RecordingTrial:
    trial = RecordingTrial()
    quick = QuickCalls(wanted, len(claims))
    for number in range(len(claims)):
        seen = claims[: number + 1]
        quick.consider(trial, CASE, str(number), 1000 + number, f"d{number}", seen)
    quick.audit(trial, Answers(answer(42), quick=wanted, later=later))
    return trial


def test_only_quick_repetitions_are_audited_each_with_its_own_seed_and_digest() -> None:
    claims = [1.0, 9.0] * 50
    trial = audited(claims, wanted=3)
    assert len(trial.compared) == 3
    for label, seed, committed in trial.compared:
        assert claims[int(label)] == 1.0
        assert (seed, committed) == (1000 + int(label), f"d{label}")
    assert [audit.seed for audit in trial.outcome.audits] == [one[1] for one in trial.compared]


def test_nobody_can_foresee_which_are_audited() -> None:
    counts: Counter[str] = Counter()
    for _ in range(1000):
        counts.update(label for label, _, _ in audited([1.0] * 24, wanted=2).compared)
    # from the fifth to the 21st of 24, each 1000 · 2 / 17 = 118 times, give or take 10
    assert sorted(counts, key=int) == [str(number) for number in range(4, 21)]
    assert all(60 < count < 180 for count in counts.values())


def test_no_more_is_fetched_than_is_compared() -> None:
    trial = audited([1.0] * 100, wanted=2)
    assert trial.fetched == [label for label, _, _ in trial.compared]
    assert len(trial.fetched) == 2


def test_none_is_audited_where_none_is_wanted_or_claims_are_few() -> None:
    assert audited([1.0] * 100, wanted=0).fetched == []
    assert audited([1.0] * 4, wanted=2).fetched == []


def test_a_result_may_be_kept_whatever_its_claim() -> None:
    trial = RecordingTrial()
    quick = QuickCalls(0, 100)
    quick.keep(trial, CASE, "cold", 7, "digest")
    quick.audit(trial, Answers(answer(42), later=later))
    assert trial.compared == [("cold", 7, "digest")]
