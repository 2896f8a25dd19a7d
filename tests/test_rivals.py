"""What is timed beside a submission: forms of inputs, turns and failures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from judge.audit import AUDITS, NO_AUDITS, AuditSeeds, answers
from judge.case import Case
from judge.child.arguments import InputForm
from judge.child.log import ChildLog
from judge.implementations import (
    CORE,
    STUDENT,
    Implementation,
    simple_implementation,
)
from judge.record import CaseResult
from judge.repetitions import Repetitions
from judge.rivals import Rivals
from judge.session import Session
from judge.verdict import Verdict
from tests.stand_ins import (
    COUNT,
    NOT_THERE,
    OWN,
    QUICK,
    RAW,
    SLOW,
    WRONG,
    public,
    stand_in,
)
from tests.trial import SEED, new_session, verdict_cases


@contextmanager
def rivals_of(
    tmp_path: Path,
    *implementations: Implementation,
    everything: bool = False,
    strict: bool = False,
) -> Iterator[tuple[Rivals, list[bool]]]:
    """The rivals with the CPU's simple one, and what they did to the submission's child."""
    log = ChildLog(tmp_path / "log.txt")
    pauses: list[bool] = []

    def start(one: Implementation) -> Session:
        return new_session(one.submission, log, strict=strict, inputs=one.inputs)

    simple = simple_implementation("cpu")
    rivals = Rivals(implementations, simple, start, pauses.append, set(), everything=everything)
    try:
        yield rivals, pauses
    finally:
        for session in rivals.sessions:
            session.close()
        log.close()


def judged(rivals: Rivals, place: int = 0) -> dict[str, object]:
    case = verdict_cases()[place]
    known = answers(case, SEED, NO_AUDITS, AuditSeeds(), torch.device("cpu"))
    rivals.prepare("test", case, SEED, COUNT, known)
    rivals.complete_turns()
    return {one.implementation: one for one in rivals.results()}


def test_the_fastest_that_is_right_takes_turns_and_is_t100(tmp_path: Path) -> None:
    with rivals_of(tmp_path, SLOW, WRONG, QUICK, NOT_THERE) as (rivals, pauses):
        results = judged(rivals)
    assert {name: one.verdict for name, one in results.items()} == {
        "slow": Verdict.PASS,
        "wrong": Verdict.WRONG,
        "quick": Verdict.PASS,
        "not_there": Verdict.CRASH,
        "simple": Verdict.PASS,
    }
    assert "output" in results["wrong"].detail
    assert "no_such_library" in results["not_there"].detail
    assert {name: one.role for name, one in results.items() if one.role} == {
        "quick": "t100",
        "simple": "t60",
    }
    for name in ("quick", "simple"):
        assert results[name].in_turns
        assert len(results[name].timing.samples_ms) == COUNT.repetitions
    assert not results["slow"].in_turns
    assert results["slow"].timing.min_ms >= 200  # it sleeps as long
    assert results["wrong"].timing is results["not_there"].timing is None
    assert pauses
    assert pauses == [True, False] * (len(pauses) // 2)


def test_times_that_no_call_takes_are_a_failure_of_the_rival_alone(tmp_path: Path) -> None:
    # three calls check it, and what it has patched
    forged = "lambda times, **_: torch.full((len(times),), float('nan'), dtype=torch.float64)"
    forging = public("forging", f"calls > 3 and setattr(torch, 'tensor', {forged})")
    with rivals_of(tmp_path, forging, SLOW) as (rivals, _):
        results = judged(rivals)
    assert results["forging"].verdict is not Verdict.PASS
    assert "no call takes" in results["forging"].detail
    assert results["forging"].timing is None
    assert results["slow"].role == "t100"


def test_what_runs_the_submission_s_code_is_checked_with_fresh_contents(tmp_path: Path) -> None:
    kept = "tuple(one.clone() for one in first)"
    remembering = RAW.format(line=f"if calls > 1: return {kept}")
    remembering = remembering.replace("global calls", "global calls, first")
    last = "return o.to(torch.bfloat16), s"
    assert last in remembering
    remembering = remembering.replace(last, f"first = o.to(torch.bfloat16), s; return {kept}")
    student = stand_in(STUDENT, remembering)
    case = verdict_cases()[0]
    known = answers(case, SEED, AUDITS["cpu"], AuditSeeds(), torch.device("cpu"))
    with rivals_of(tmp_path, student, QUICK, strict=True) as (rivals, _):
        rivals.prepare("test", case, SEED, COUNT, known)
        found = {one.implementation: one for one in rivals.results()}
    assert found[STUDENT].verdict is Verdict.WRONG
    assert "fresh contents" in found[STUDENT].detail
    assert found["quick"].verdict is Verdict.PASS


def test_a_block_that_is_run_again_takes_the_first_one_s_place(tmp_path: Path) -> None:
    with rivals_of(tmp_path, QUICK) as (rivals, _):
        before = judged(rivals)["quick"].timing.samples_ms
        rivals.run_block(0)
        after = rivals.results()[0].timing.samples_ms
    half = COUNT.repetitions // 2
    assert len(before) == len(after) == COUNT.repetitions
    assert before[:half] != after[:half]
    assert before[half:] == after[half:]


def test_turns_that_were_disturbed_are_forgotten_and_can_be_made_up_for(tmp_path: Path) -> None:
    with rivals_of(tmp_path, QUICK) as (rivals, _):
        judged(rivals)
        assert rivals.turns_are_complete
        rivals.forget_turns()
        forgotten = {one.implementation: one for one in rivals.results()}
        assert not rivals.turns_are_complete
        rivals.complete_turns()
        (again, _) = rivals.results()
    assert not forgotten["quick"].in_turns
    assert forgotten["simple"].timing is None
    assert len(again.timing.samples_ms) == COUNT.repetitions


def test_an_implementation_that_fails_while_timed_leaves_its_place_to_the_next(
    tmp_path: Path,
) -> None:
    # three calls check it, one warms it up, five try it out, one warms it up again
    late = public("late", "assert calls <= 11")
    with rivals_of(tmp_path, late, SLOW) as (rivals, _):
        first = judged(rivals)
        second = judged(rivals, 1)
    assert first["late"].verdict is Verdict.CRASH
    assert first["late"].detail.startswith("while timed: CRASH: AssertionError")
    assert first["late"].timing is None
    assert first["slow"].role == "t100"
    assert first["simple"].timing is not None
    # a fresh child for the next case, which fails in the same place
    assert second["late"].verdict is Verdict.CRASH


def test_what_a_run_knows_to_be_right_is_not_checked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []
    judge = Session.judge

    def counted(session: Session, suite: str, case: Case, *rest: object) -> CaseResult:
        checked.append(case.name)
        return judge(session, suite, case, *rest)

    monkeypatch.setattr(Session, "judge", counted)
    first_name, second_name = (case.name for case in verdict_cases()[:2])
    with rivals_of(tmp_path, SLOW, WRONG, QUICK) as (rivals, _):
        first = judged(rivals)
        again = judged(rivals)
        judged(rivals, 1)
    # four of them, then the one that was wrong, then four on a case that nobody knows
    assert checked == [first_name] * 4 + [first_name] + [second_name] * 4
    assert again["quick"].role == "t100"
    assert len(again["quick"].timing.samples_ms) == COUNT.repetitions
    # all are tried out anew: a submission cannot spoil what the next one is scored by
    for name in ("quick", "slow", "simple"):
        assert again[name].verdict is Verdict.PASS
        assert again[name].timing != first[name].timing
    assert again["wrong"].verdict is Verdict.WRONG


# Three calls check it, six try it out, two blocks are three each: fifteen beside a submission; one
# gets it ready beside the next.
@pytest.mark.parametrize("fails_at", [16, 18, 26], ids=["ready", "tried out", "in turns"])
def test_what_was_right_and_fails_beside_the_next_submission_is_checked_anew(
    tmp_path: Path, fails_at: int
) -> None:
    late = public("late", f"assert calls != {fails_at}")
    with rivals_of(tmp_path, late, SLOW) as (rivals, _):
        first = judged(rivals)
        second = judged(rivals)
        third = judged(rivals)
    assert (first["late"].role, first["late"].verdict) == ("t100", Verdict.PASS)
    if fails_at == 16:  # a fresh child took its place
        assert (second["late"].role, second["late"].verdict) == ("t100", Verdict.PASS)
        assert second["late"].in_turns
    else:
        assert second["late"].verdict is Verdict.CRASH
        assert "while timed: CRASH: AssertionError" in second["late"].detail
        assert second["slow"].role == "t100"
    if fails_at == 18:  # before the turns
        assert second["slow"].in_turns
    assert (third["late"].role, third["late"].verdict) == ("t100", Verdict.PASS)


def test_a_core_prepares_its_own_inputs_and_is_never_t100(tmp_path: Path) -> None:
    core = stand_in("own", OWN, scope=CORE, inputs=InputForm.OWN)
    given = replace(core, name="given", inputs=InputForm.PREPARED)
    with rivals_of(tmp_path, core, given, SLOW, everything=True) as (rivals, _):
        results = judged(rivals)
    assert results["own"].verdict is Verdict.PASS
    assert results["given"].verdict is Verdict.WRONG  # it takes the judge's A for its own
    assert (results["own"].role, results["slow"].role) == ("", "t100")
    assert all(results[name].in_turns for name in ("own", "slow", "simple"))


def test_they_run_in_a_block_before_each_half_of_the_submission_s_calls(tmp_path: Path) -> None:
    with rivals_of(tmp_path, QUICK) as (rivals, _):
        case = verdict_cases()[0]
        known = answers(case, SEED, NO_AUDITS, AuditSeeds(), torch.device("cpu"))
        rivals.prepare("test", case, SEED, Repetitions(0, 5), known)
        rivals.run_block(0)
        (before, _) = rivals.results()
        rivals.run_block(1)
        (after, _) = rivals.results()
    assert len(before.timing.samples_ms) == 3
    assert len(after.timing.samples_ms) == 5
    assert after.timing.samples_ms[:3] == before.timing.samples_ms


def test_a_submission_that_fails_leaves_full_times_of_the_others(tmp_path: Path) -> None:
    with rivals_of(tmp_path, QUICK) as (rivals, _):
        case = verdict_cases()[0]
        known = answers(case, SEED, NO_AUDITS, AuditSeeds(), torch.device("cpu"))
        rivals.prepare("test", case, SEED, COUNT, known)
        rivals.run_block(0)
        assert len(rivals.results()[0].timing.samples_ms) == COUNT.repetitions // 2
        rivals.complete_turns(rivals.blocks_run)
        assert len(rivals.results()[0].timing.samples_ms) == COUNT.repetitions
