"""What one submission may take of a lane and of a compile worker in all."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from judge.engines.compile_ahead import Compiled, CompileSetup, CompileStage
from judge.grading import MOST_TIMEOUTS, grade
from judge.profiles import PROFILES
from judge.sandbox.kinds import Kind, Sandbox
from judge.submission import ENTRY, Submission, submission_from
from judge.trial import Limits
from judge.verdict import Verdict
from tests.test_class_run import Quiet
from tests.trial import STARTER, cpu_plan

CASES = """
suite: small
tolerance: 5e-3
cases:
  - {name: right, batch: 1, tokens: 65, qk_heads: 1, v_heads: 2, timed: false}
  - {name: late-1, batch: 1, tokens: 1, qk_heads: 1, v_heads: 2, timed: false}
  - {name: late-2, batch: 1, tokens: 1, qk_heads: 1, v_heads: 3, timed: false}
  - {name: right-too, batch: 1, tokens: 65, qk_heads: 1, v_heads: 1, timed: false}
  - {name: late-3, batch: 1, tokens: 1, qk_heads: 1, v_heads: 4, timed: false}
  - {name: unrun-1, batch: 1, tokens: 65, qk_heads: 1, v_heads: 2, timed: false}
  - {name: unrun-2, batch: 1, tokens: 1, qk_heads: 1, v_heads: 2}
"""
SLEEPS_AT_ONE_TOKEN = """

right = gdn_prefill_forward

def gdn_prefill_forward(q, *rest):
    import time
    time.sleep(999 if q.shape[1] == 1 else 0)
    return right(q, *rest)
"""


def named(name: str, source: str = "") -> Submission:
    return submission_from(name, name, ENTRY, {ENTRY: source.encode()})


def test_after_three_cases_out_of_time_the_rest_is_not_run(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(CASES)
    plan = replace(
        cpu_plan(file, baseline="none", protocol="lab"),
        submission=named("sleeping", STARTER.read_text() + SLEEPS_AT_ONE_TOKEN),
        limits=Limits(first_call=3.0),
    )
    record = grade(plan, Quiet())
    found = {result.case.name: result for result in record.results}
    assert [found[name].verdict for name in ("right", "right-too")] == [Verdict.PASS] * 2
    for number in range(1, MOST_TIMEOUTS + 1):
        late = found[f"late-{number}"]
        assert (late.verdict, late.detail[:10]) == (Verdict.TIMEOUT, "first call")
    for name in ("unrun-1", "unrun-2"):
        assert found[name].verdict is Verdict.TIMEOUT
        assert found[name].detail == "not run: 3 earlier cases ran out of time"
    assert found["unrun-2"].score == 0.0
    assert not record.interrupted


def test_a_submission_that_draws_out_its_cases_does_not_hold_the_lane(tmp_path: Path) -> None:
    """All may take 3 · 2 s and 12 · 0.2 s; the first case alone takes 9 s, for its import."""
    file = tmp_path / "small.yaml"
    file.write_text(CASES)
    slow = "import time; time.sleep(9)\n"
    plan = replace(
        cpu_plan(file, baseline="none", protocol="lab"),
        submission=named("slow", STARTER.read_text() + slow),
        limits=Limits(first_call=2.0, run=0.2),
    )
    assert plan.limits.whole == pytest.approx(8.4)
    first, *others = grade(plan, Quiet()).results
    assert not first.detail.startswith("not run")
    assert len(others) == 6
    for result in others:
        told = "not run: earlier cases took more than the 8.4 s that all may take"
        assert (result.verdict, result.detail) == (Verdict.TIMEOUT, told)


@pytest.mark.parametrize("name", ["hanging", "stubborn"])
def test_a_submission_that_takes_too_long_to_compile_is_passed_over(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GDN_JUDGE_CACHE", str(tmp_path))
    (tmp_path / "logs").mkdir()
    monkeypatch.setattr("judge.engines.compile_ahead._MODULE", "tests.compile_stand_in")
    monkeypatch.setattr("judge.engines.compile_ahead._END_WAIT_S", 2.0)
    monkeypatch.setattr("judge.engines.process._END_WAIT_S", 0.1)
    setup = CompileSetup([], PROFILES["h200"], Sandbox(Kind.NONE))
    stage = CompileStage(setup, [()], limit_s=5.0)
    done: list[Compiled] = []
    deadline = time.monotonic() + 60
    try:
        stage.submit(1, named(name))
        stage.submit(2, named("right"))
        while len(done) < 2 and time.monotonic() < deadline:
            done += stage.poll()
            time.sleep(0.02)
    finally:
        stage.close()
    assert done == [Compiled(1, {}, 0.0), Compiled(2, {"case": "an error"}, 1.0)]
