"""Runs with a live baseline: what becomes t100 and t60, and what a submission cannot do to it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from click.testing import CliRunner

from judge import bench, cli, grading
from judge.baseline import Choice, Measure
from judge.engines.engine import Began, Event, Task, new_setup
from judge.engines.lane import Lane
from judge.record import CaseResult, Record, from_json
from judge.session import Session
from judge.submission import ENTRY, Submission, submission_from
from judge.verdict import Verdict
from tests.stand_ins import (
    QUICK,
    SLOW,
    WRONG,
    public,
    with_full_device,
)
from tests.trial import STARTER, VERDICT_CASES, cpu_plan


def live_record(
    monkeypatch: pytest.MonkeyPatch,
    *arguments: str,
    implementations: tuple = (QUICK, WRONG),
    exit_code: int = 0,
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
    assert result.exit_code == exit_code, result.output
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


def test_a_submission_cannot_crowd_out_what_it_is_compared_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once its children have ended there is room, and it is judged in a fresh one."""
    ended: list[str] = []
    drop, judge = Session.drop_child, Session.judge

    def dropped(session: Session) -> None:
        ended.append(session._submission.name)
        drop(session)

    def judged_in_little_memory(session: Session, *rest: object) -> CaseResult:
        result = judge(session, *rest)
        if session._submission.name != "quick" or "starter" in ended:
            return result
        return replace(result, verdict=Verdict.CRASH, detail="CUDA out of memory. Tried to")

    monkeypatch.setattr(Session, "drop_child", dropped)
    monkeypatch.setattr(Session, "judge", judged_in_little_memory)
    record = live_record(
        monkeypatch, "--case", "first", "--repetitions", "4", implementations=(QUICK, SLOW)
    )
    assert ended.count("starter") == 1
    assert record.results[0].verdict is Verdict.PASS
    assert [(one.implementation, one.role) for one in record.rivals if one.role] == [
        ("quick", "t100"),
        ("simple", "t60"),
    ]


def test_beside_a_submission_that_leaves_no_memory_its_case_is_not_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Three calls check it, five try it out. As large has no room, it is got ready once more, which
    # is the ninth; so a fresh child begins anew, and comes to its ninth in turns.
    crowded = public("crowded", "calls == 9 and _full()")
    crowded = replace(crowded, submission=with_full_device(crowded.submission))
    large = public("large", "_full()")  # never has room, which excuses nobody
    large = replace(large, submission=with_full_device(large.submission))
    arguments = ("--case", "first", "--repetitions", "4")
    record = live_record(
        monkeypatch, *arguments, implementations=(large, crowded, SLOW), exit_code=1
    )
    (result,) = record.results
    assert result.verdict is Verdict.NOT_RUN
    told = "beside the submission there was too little device memory for crowded (full_forward)"
    assert result.detail == told
    assert result.score is None


def test_what_is_too_large_for_the_device_is_left_out_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dropped: list[str] = []
    drop = Session.drop_child

    def counted(session: Session) -> None:
        dropped.append(session._submission.name)
        drop(session)

    monkeypatch.setattr(Session, "drop_child", counted)
    large = public("large", "_full()")
    large = replace(large, submission=with_full_device(large.submission))
    record = live_record(monkeypatch, "--repetitions", "2", implementations=(large, QUICK))
    assert all(result.verdict is Verdict.PASS for result in record.results)
    assert len(record.results) > 1
    assert dropped.count("starter") == 1
    roles = [one.role for one in record.rivals if one.implementation == "quick"]
    assert roles == ["t100"] * len(record.results)


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
