"""What a child is asked for under the strict protocol, by a trial that follows a script."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, repeat

import pytest
import torch
from trial import verdict_cases

from judge.audit import Answer, Answers
from judge.case import Case
from judge.checking import Expected, Finding
from judge.child.errors import ChildError
from judge.child.protocol import Ran, Repeated, Run
from judge.repetitions import Repetitions
from judge.strict_protocol import Terms, run_strict_protocol
from judge.trial import Limits, Outcome, TrialOver
from judge.verdict import Verdict
from judge.witness import Allowance, Repetition, charge_note

NOTHING = Expected(torch.zeros(0), torch.zeros(0))
CASE = verdict_cases()[0]


def answer(seed: int) -> Answer:
    return Answer(seed, None, NOTHING, 5e-3, {})


class Scripted:
    """A trial whose child answers at once; notes what was asked, and when it stood still."""

    def __init__(self, claims: Iterator[float]) -> None:
        self.limits, self.outcome = Limits(run=100.0), Outcome()
        self.answered_s, self.asked_s = 0.01, 0.03
        self.seen_ms: Iterator[float] = repeat(10.0)
        self.asked: list[str] = []
        self.left: list[float] = []
        self.judged: list[tuple[str, int, dict[str, str], str]] = []
        self._claims = claims

    def repeat(
        self,
        seed: int,
        gate: str | None,
        phase: str,
        limit_s: float,
        left_s: float,
        *,
        rehearsed: bool,
        awake: bool,
    ) -> Repeated:
        assert (phase, awake) == ("run", True)
        self.asked.append("rehearsed" if rehearsed else "at once")
        self.left.append(limit_s - left_s)
        self.answered_s = next(self.seen_ms) / 1e3
        return Repeated(next(self._claims), 5.0, "", "digest")

    def ask(
        self, request: Run, wanted: type[Ran], phase: str, limit_s: float, left_s: float
    ) -> Ran:
        self.left.append(limit_s - left_s)
        self.asked.append(f"loop of {request.repetitions} after {request.warmup}")
        self.looped_ms = [next(self._claims) for _ in range(request.repetitions)]
        time.sleep(sum(self.looped_ms) / 1e3)
        return Ran()

    def take(self, size: int) -> bytes:
        assert size == 8 * len(self.looped_ms)
        return struct.pack(f"={len(self.looped_ms)}d", *self.looped_ms)

    def pause(self, paused: bool) -> None:
        self.asked.append("stopped" if paused else "going on")

    def collect(
        self,
        which: str,
        label: str,
        case: Case,
        answer: Answer,
        inputs: dict[str, str],
        committed: str = "",
    ) -> Finding:
        self.judged.append((which, answer.seed, inputs, committed))
        return Finding(Verdict.PASS, "", [])


class ScriptedNull:
    """Notes its repetitions among what a trial's child is asked for."""

    def __init__(self, asked: list[str]) -> None:
        self._asked = asked

    def repeat(self) -> Repetition:
        self._asked.append("null")
        return Repetition(0.01, 0.01, 5.0)


LENIENT = Allowance(
    pairs=1,
    rest_ms=1e9,
    rest_share=0.0,
    apart_ms=1e9,
    apart_share=0.0,
    busy_us=1e9,
    cold_ms=0.02,
    cold_share=0.1,
)


def asked_of(claims: list[float], *, rehearsed: bool) -> Scripted:
    """What a case of two warm-ups and these claims is asked for, one repetition of it paired."""
    trial = Scripted(iter([1.0, 1.0, *claims]))
    trusted = Answers(answer(42))
    terms = Terms(ScriptedNull(trial.asked), LENIENT, rehearsed=rehearsed)
    run_strict_protocol(trial, CASE, Repetitions(2, len(claims)), trusted, {}, terms)
    return trial


def test_the_neighbour_comes_before_the_rehearsal_whose_time_counts_for_the_limit() -> None:
    trial = asked_of([0.5], rehearsed=True)
    turn = ["stopped", "null", "going on", "rehearsed"]
    assert trial.asked == ["rehearsed", "rehearsed", *turn]
    assert trial.left == pytest.approx([0.0, 0.03, 0.06])


def test_nothing_is_rehearsed_on_a_cpu_nor_behind_a_slow_call() -> None:
    assert "rehearsed" not in asked_of([0.5] * 3, rehearsed=False).asked
    asked = asked_of([0.5, 2.5, 0.5, 0.5], rehearsed=True).asked
    turns = [one for one in asked if one in ("rehearsed", "at once")]
    assert turns == ["rehearsed"] * 4 + ["at once", "rehearsed"]


@pytest.mark.parametrize(
    ("second", "evidence"), [(0.6, ""), (9.0, "claimed 0.5 ms a call; the judge's clock saw 8.5")]
)
def test_nobody_is_accused_by_one_measurement(second: float, evidence: str) -> None:
    # one warm-up and three calls, of which 0.5 ms are claimed, and 5 ms seen at first
    trial = Scripted(repeat(0.5))
    trial.seen_ms = chain(repeat(5.0, 4), repeat(second))
    allowance = replace(LENIENT, rest_ms=1.0)
    terms = Terms(ScriptedNull(trial.asked), allowance)
    trusted = Answers(answer(42))
    if evidence:
        with pytest.raises(TrialOver) as over:
            run_strict_protocol(trial, CASE, Repetitions(1, 3), trusted, {}, terms)
        assert over.value.verdict is Verdict.CHEAT
        assert over.value.detail.startswith(evidence)
    else:
        run_strict_protocol(trial, CASE, Repetitions(1, 3), trusted, {}, terms)
        assert trial.outcome.timing.samples_ms == [0.5, 0.5, 0.5]
        assert trial.outcome.witness.seen_ms == second
    assert trial.outcome.repeated
    assert trial.asked.count("at once") == 8
    assert trial.asked.count("null") == 2


def looped(
    claims: list[float],
    loop: list[float],
    beside: Callable[[int], None] | None = None,
    floor_ms: float | None = None,
) -> Scripted:
    """A trial of one warm-up and these claims, and of a loop of as many calls."""
    trial = Scripted(iter([1.0, *claims, *loop]))
    known = Answers(answer(42), (replace(answer(7), input_digests={"q": "fresh"}),))
    terms = Terms(ScriptedNull(trial.asked), LENIENT, floor_ms, looped=True)
    count = Repetitions(1, len(claims))
    run_strict_protocol(trial, CASE, count, known, {"q": "fixed"}, terms, beside)
    return trial


def test_the_loop_s_times_count_where_cold_caches_explain_the_rest() -> None:
    # of 1 ms with new contents 0.02 ms and a tenth are let pass
    trial = looped([1.0, 1.0, 1.0], [0.9, 0.89, 0.88])
    assert trial.outcome.timing.samples_ms == [0.9, 0.89, 0.88]
    witness = trial.outcome.witness
    assert (witness.claimed_ms, witness.loop_ms, witness.charged_ms) == (1.0, 0.89, 0.0)
    assert "loop of 3 after 1" in trial.asked


def test_a_call_that_does_less_where_contents_repeat_gains_no_more_than_that() -> None:
    trial = looped([1.0, 1.0, 1.0], [0.2, 0.1, 0.3])
    assert trial.outcome.timing.samples_ms == pytest.approx([0.88, 0.78, 0.98])
    assert trial.outcome.timing.median_ms == pytest.approx(1.0 - 0.02 - 0.1)
    assert trial.outcome.witness.charged_ms == pytest.approx(0.68)


def test_what_is_added_is_told_where_it_is_more_than_a_trifle() -> None:
    much = looped([1.0, 1.0, 1.0], [0.2, 0.1, 0.3]).outcome.witness
    assert charge_note(much) == (
        "1 ms a call with new contents, 0.2 ms where they repeat: 0.68 ms are added"
    )
    little = looped([1.0, 1.0, 1.0], [0.86, 0.86, 0.86]).outcome.witness
    assert little.charged_ms == pytest.approx(0.02)
    assert charge_note(little) == charge_note(None) == ""


def test_the_loop_s_results_are_judged_by_the_contents_of_the_last_repetition() -> None:
    trial = looped([1.0, 1.0], [1.0, 1.0])
    fresh = (7, {"q": "fresh"})
    assert trial.judged[-3:] == [
        ("last", *fresh, "digest"),
        ("first", *fresh, ""),
        ("last", *fresh, ""),
    ]


def test_the_loop_takes_turns_with_what_runs_beside_it() -> None:
    order: list[int] = []
    trial = looped([1.0] * 5, [1.0] * 5, order.append)
    loops = [one for one in trial.asked if one.startswith("loop")]
    assert loops == ["loop of 3 after 1", "loop of 2 after 1"]
    assert order == [0, 1]
    assert len(trial.outcome.timing.samples_ms) == 5


@pytest.mark.parametrize("which", ["first", "last"])
def test_a_case_that_fails_in_the_loop_has_no_time(which: str) -> None:
    trial = Scripted(repeat(1.0))
    judge = trial.collect

    def collect(one: str, label: str, *rest: object) -> Finding:
        if label == f"{which} timed call":
            raise TrialOver(Verdict.WRONG, label)
        return judge(one, label, *rest)

    trial.collect = collect
    terms = Terms(ScriptedNull(trial.asked), LENIENT, looped=True)
    with pytest.raises(TrialOver):
        run_strict_protocol(trial, CASE, Repetitions(1, 3), Answers(answer(42)), {}, terms)
    assert trial.outcome.timing is None


def test_a_neighbour_that_fails_is_nobody_s_fault() -> None:
    trial = Scripted(repeat(1.0))

    class Failing:
        def repeat(self) -> Repetition:
            raise ChildError("gone")

    with pytest.raises(TrialOver) as over:
        run_strict_protocol(
            *(trial, CASE, Repetitions(1, 3), Answers(answer(42)), {}, Terms(Failing(), LENIENT))
        )
    assert over.value.verdict is Verdict.NOT_RUN
    assert over.value.detail == "the submission that does nothing failed: gone"
    assert trial.asked[-1] == "going on"


def test_where_no_loop_follows_the_others_run_their_first_block_before_all() -> None:
    trial = Scripted(repeat(1.0))
    terms = Terms(ScriptedNull(trial.asked), LENIENT)
    begun: list[tuple[int, int]] = []
    run_strict_protocol(
        *(trial, CASE, Repetitions(1, 3), Answers(answer(42)), {}, terms),
        lambda number: begun.append((number, len(trial.asked))),
    )
    assert begun == [(0, 0)]


def test_a_loop_quicker_than_the_device_can_be_is_no_loop() -> None:
    with pytest.raises(TrialOver) as over:
        looped([1.0], [0.1, 1.0, 1.0, 0.1], floor_ms=0.3)  # twice, as all contradictions are
    assert over.value.verdict is Verdict.CHEAT
    assert over.value.detail.startswith("claimed 0.1 ms a call; this device needs at least 0.3 ms")
