"""What is timed beside a submission: forms of inputs, turns, failures, and what becomes t100."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from judge import bench, cli, grading
from judge.audit import AUDITS, NO_AUDITS, AuditSeeds, answers
from judge.baseline import Choice, Measure
from judge.case import Case
from judge.child.arguments import InputForm
from judge.child.log import ChildLog
from judge.engines.engine import Began, Event, Task, new_setup
from judge.engines.lane import Lane
from judge.implementations import (
    CORE,
    FULL,
    STUDENT,
    Implementation,
    simple_implementation,
)
from judge.record import CaseResult, Record, from_json
from judge.repetitions import Repetitions
from judge.rivals import Rivals
from judge.session import Session
from judge.submission import ENTRY, Submission, submission_from
from judge.verdict import Verdict
from tests.trial import ROOT, SEED, STARTER, VERDICT_CASES, cpu_plan, new_session, verdict_cases

RAW = """
    import time
    import torch
    from reference.chunked import chunked_forward
    from reference.preprocess import preprocess_for

    preprocess = preprocess_for(torch.device("cpu"))
    calls = 0

    def gdn_prefill_forward(q, k, v, raw_g, beta, initial_state):
        global calls
        calls += 1
        {line}
        g_cumsum, A = preprocess(k, raw_g, beta)
        o, s = chunked_forward(q, k, v, g_cumsum, beta, A, initial_state, dtype=torch.float32)
        return o.to(torch.bfloat16), s
"""
# Its A has no decay inside, as FlashQLA's: what a submission gets would make it wrong.
OWN = """
    import torch
    from reference.chunked import chunked_forward
    from reference.preprocess import preprocess_for

    preprocess = preprocess_for(torch.device("cpu"))

    def prepare_arguments(k, raw_g, beta):
        g_cumsum, A = preprocess(k, raw_g, beta)
        return g_cumsum * 2, A.clone() / 2

    def gdn_prefill_forward(q, k, v, g_cumsum, beta, A, initial_state):
        o, s = chunked_forward(
            q, k, v, g_cumsum / 2, beta, A * 2, initial_state, dtype=torch.float32
        )
        return o.to(torch.bfloat16), s
"""
HELPERS = {
    f"reference/{name}": (ROOT / "reference" / name).read_bytes()
    for name in ("__init__.py", "chunked.py", "preprocess.py")
}
COUNT = Repetitions(warmup=1, repetitions=4)


def stand_in(
    name: str, body: str, *, scope: str = FULL, inputs: InputForm = InputForm.RAW
) -> Implementation:
    source = textwrap.dedent(body).encode()
    submission = submission_from(name, name, "forward.py", {"forward.py": source} | HELPERS)
    return Implementation(name, scope, "1.0", submission, inputs)


def public(name: str, line: str = "pass") -> Implementation:
    """A whole forward in PyTorch that runs `line` first, with the number of its calls at hand."""
    return stand_in(name, RAW.format(line=line))


SLOW = public("slow", "time.sleep(0.2)")
QUICK = public("quick")
WRONG = public("wrong", "raw_g = raw_g * 2")
NOT_THERE = public("not_there", "import no_such_library")


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


def live_record(
    monkeypatch: pytest.MonkeyPatch, *arguments: str, implementations: tuple = (QUICK, WRONG)
) -> Record:
    """A run with a live baseline, stand-ins in the place of public implementations."""

    def graded(plan: grading.Plan, progress: grading.Progress) -> Record:
        choice = Choice(None, "", Measure.LIVE)
        return grading.grade(replace(plan, public=implementations, choice=choice), progress)

    monkeypatch.setattr(cli, "grade", graded)
    result = CliRunner().invoke(
        cli.main,
        ["--device", "cpu", "--cases", str(VERDICT_CASES), "--output-format", "json", *arguments],
    )
    assert result.exit_code == 0, result.output
    return from_json(result.stdout)


@pytest.mark.parametrize("protocol", ["strict", "lab"])
def test_a_run_is_scored_by_what_took_turns_with_it(
    monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    record = live_record(monkeypatch, "--protocol", protocol, "--repetitions", "4")
    assert record.baseline.source == "live"
    assert "quick 1.0" in record.baseline.name
    for result in record.results:
        name = result.case.name
        mine = {one.implementation: one for one in record.rivals if one.case == name}
        t100, t60 = mine["quick"].timing, mine["simple"].timing
        assert len(t100.samples_ms) == len(t60.samples_ms) == 4
        assert record.baseline.t100_ms[name] == t100.median_ms
        assert record.baseline.t60_ms[name] == max(t60.median_ms, 1.25 * t100.median_ms)
        assert result.score > 0
        assert any(
            note.startswith(f"{name}: wrong (full_forward) left out: WRONG")
            for note in record.notes
        )


def test_benchmarks_time_the_submission_s_whole_forward_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record = live_record(
        monkeypatch, "--reference-benchmarks", "--repetitions", "2", "--case", "first"
    )
    names = [(one.implementation, one.scope, one.verdict) for one in record.rivals]
    assert names == [
        ("student", "full_forward", Verdict.PASS),
        ("quick", "full_forward", Verdict.PASS),
        ("wrong", "full_forward", Verdict.WRONG),
        ("simple", "core", Verdict.PASS),
    ]
    assert [one.role for one in record.rivals] == ["", "t100", "", "t60"]
    assert len(record.rivals[0].timing.samples_ms) == 2


def test_submissions_of_a_lane_take_turns_with_the_same_children(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: Counter[str] = Counter()

    def counted(submission: Submission, *rest: object, **options: object) -> Session:
        started[submission.name] += 1
        return Session(submission, *rest, **options)

    monkeypatch.setattr(bench, "Session", counted)
    plan = replace(cpu_plan(VERDICT_CASES), public=(QUICK,), choice=Choice(None, "", Measure.LIVE))
    source = STARTER.read_text()
    tasks = [
        Task(number, submission_from(name, name, ENTRY, {ENTRY: (source + remark).encode()}))
        for number, (name, remark) in enumerate((("a", "x = 1\n"), ("b", "x = 2\n")))
    ]
    events: list[Event] = []
    lane = Lane(new_setup(plan), "lane", events.append, upcoming=lambda: tasks[1])
    try:
        records = [lane.measure(task).record for task in tasks]
    finally:
        lane.close()
    assert (started["quick"], started["reference"], started["null"]) == (1, 1, 1)
    # each of the two once, the second one ahead; and the third, which the second was told of
    assert (started["a"], started["b"]) == (1, 2)
    assert [e.task for e in events if isinstance(e, Began)] == [0, 1]
    for record in records:
        names = [one.case.name for one in record.results]
        turns = [one for one in record.rivals if one.implementation == "quick"]
        assert [one.case for one in turns] == names
        assert all(one.in_turns and one.role == "t100" for one in turns)
        assert record.baseline.t100_ms == {one.case: one.timing.median_ms for one in turns}


def test_where_none_is_right_there_is_no_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    record = live_record(monkeypatch, "--case", "first", implementations=(WRONG,))
    assert record.baseline.t100_ms == {}
    assert record.results[0].verdict is Verdict.PASS
    assert record.results[0].score is None


def test_a_submission_that_fails_leaves_full_times_of_the_others(tmp_path: Path) -> None:
    with rivals_of(tmp_path, QUICK) as (rivals, _):
        case = verdict_cases()[0]
        known = answers(case, SEED, NO_AUDITS, AuditSeeds(), torch.device("cpu"))
        rivals.prepare("test", case, SEED, COUNT, known)
        rivals.run_block(0)
        assert len(rivals.results()[0].timing.samples_ms) == COUNT.repetitions // 2
        rivals.complete_turns(rivals.blocks_run)
        assert len(rivals.results()[0].timing.samples_ms) == COUNT.repetitions
