"""What the submissions of a run share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from click.testing import CliRunner

from judge import bench as module
from judge.audit import Answer, Answers
from judge.bench import Bench, Progress
from judge.case import Case
from judge.checking import Expected
from judge.cli import main
from judge.kept_answers import KeptAnswers
from judge.record import CaseResult
from judge.store.store import Store
from judge.submission import ENTRY
from judge.timing import summarize
from judge.verdict import Verdict
from judge.witness import Repetition
from tests.make_record import make_case
from tests.trial import STARTER, VERDICT_CASES, cpu_plan

CASE = make_case("one")
BYTES = 8 * (3 + 5)


@pytest.mark.parametrize(
    ("device_room", "host_room", "may_stay", "computed"),
    [
        (0, 2 * BYTES, True, 1),
        (2 * BYTES, 0, True, 1),
        (2 * BYTES, 0, False, 3),
        (2 * BYTES, 2 * BYTES, False, 1),
        (2 * BYTES - 1, 2 * BYTES - 1, True, 3),
        (0, 0, True, 3),
    ],
)
def test_answers_are_computed_once_where_there_is_room(
    device_room: int, host_room: int, may_stay: bool, computed: int
) -> None:
    calls = []

    def compute() -> Answers:
        calls.append(1)
        expected = Expected(torch.ones(3).double(), torch.zeros(5).double())
        fixed = Answer(42, None, expected, 5e-3, {"q": "digest"})
        return Answers(fixed, (fixed,), None, 1, 0, lambda seeds: [])

    kept = KeptAnswers(torch.device("cpu"), device_room, host_room)
    known = [kept.of(CASE, compute, may_stay=may_stay) for _ in range(3)]
    assert len(calls) == computed
    for one in known:
        assert torch.equal(one.fresh[0].expected.output, torch.ones(3).double())
        assert (one.fixed.seed, one.fixed.input_digests, one.quick) == (42, {"q": "digest"}, 1)


def test_submissions_of_a_run_are_audited_and_scored_alike(tmp_path: Path) -> None:
    for name, remark in (("a", "x = 1\n"), ("b", "x = 2\n")):
        path = tmp_path / "in" / name / ENTRY
        path.parent.mkdir(parents=True)
        path.write_text(STARTER.read_text() + remark)
    words = ["--device", "cpu", "--cases", str(VERDICT_CASES), "--store", str(tmp_path / "store")]
    done = CliRunner().invoke(main, ["grade", str(tmp_path / "in"), *words])
    assert done.exit_code == 0
    with Store(tmp_path / "store") as store:
        first, second = (graded.record for graded in store.results())
    assert first.submission.digest != second.submission.digest
    assert first.submission.log != second.submission.log
    assert first.baseline.t100_ms == second.baseline.t100_ms
    for one, other in zip(first.results, second.results, strict=True):
        # one repetition more is audited for being quick, by a seed of its own
        shared = {audit.seed for audit in one.audits} & {audit.seed for audit in other.audits}
        assert len(shared) == 3


class Silent(Progress):
    """Tells nobody."""

    def phase(self, phase: str) -> None: ...


class Child:
    """Stands for every session of a bench: the baseline's calls take 1 ms, the null one's rests
    what the test says."""

    rests_ms: Iterator[float] = iter(())
    told: ClassVar[list[str]] = []

    def __init__(self, *_: object, **__: object) -> None: ...

    def start(self) -> None: ...

    def pause(self, paused: bool) -> None:
        Child.told.append("stop" if paused else "go on")

    def prepare_to_repeat(self, *_: object) -> None: ...

    def repeat(self) -> Repetition:
        Child.told.append("null")
        return Repetition(0.0, next(Child.rests_ms), 0.0)

    def judge(self, suite: str, case: Case, *_: object) -> CaseResult:
        Child.told.append("judge")
        timing = summarize([1.0])
        return CaseResult(suite, case, Verdict.PASS, "", None, timing, None, {})


def known() -> Answers:
    return Answers(Answer(42, None, Expected(torch.ones(3), torch.zeros(5)), 5e-3, {}))


QUIET, BUSY = [1.0] * 5, [9.0] * 5


@pytest.mark.parametrize(
    ("before_and_after", "judged", "problem"),
    [
        ([QUIET, QUIET], 1, ""),
        ([BUSY, QUIET, QUIET], 1, ""),
        ([QUIET, BUSY, QUIET, QUIET], 2, ""),
        ([BUSY, BUSY, BUSY], 0, "the machine was not quiet"),
        ([QUIET, BUSY] * 3, 3, "the machine was not quiet"),
    ],
)
def test_a_baseline_counts_only_where_the_machine_was_quiet_around_it(
    monkeypatch: pytest.MonkeyPatch,
    before_and_after: list[list[float]],
    judged: int,
    problem: str,
) -> None:
    monkeypatch.setattr(module, "Session", Child)
    monkeypatch.setattr(Child, "rests_ms", chain.from_iterable(before_and_after))
    monkeypatch.setattr(Child, "told", [])
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    plan = cpu_plan(VERDICT_CASES, baseline="reference")
    suite, case = plan.cases[0]
    bench = Bench(plan, Silent())
    bench._quiet_ms[case.name] = 1.0  # on a CPU nobody measures it
    told = bench.measure_baseline(suite, case, known(), Child())
    assert told.startswith(problem) if problem else told == ""
    assert Child.told.count("judge") == judged
    # from the first look to the last nobody goes on
    attempt = "stop,(null,){5}(judge,(null,){5})?go on,"
    assert re.fullmatch(f"({attempt})+", "".join(f"{one}," for one in Child.told))
    assert (case.name in bench.measured) == (problem == "")


def test_answers_are_made_ahead_where_they_can_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def answers(case: Case, *_: object) -> Answers:
        made.append(case.name)
        return known()

    plan = cpu_plan(VERDICT_CASES, baseline="none", protocol="lab")
    case = replace(plan.cases[0][1], batch=1, tokens=3, v_heads=2)
    cases = [("public", replace(case, name=name)) for name in ("a", "b")]
    hidden = ("hidden", replace(case, name="c"))
    untimed = ("public", replace(case, name="d", timed=False))
    # of four answers in float64; those made here take less
    size = 4 * 8 * (3 * 2 * 128 + 2 * 128 * 128)
    monkeypatch.setattr(module, "Session", Child)
    monkeypatch.setattr(module, "answers", answers)
    monkeypatch.setattr(module, "rooms_for_answers", lambda *_: (size, 0))
    bench = Bench(replace(plan, cases=[hidden, untimed, *cases]), Silent())
    for _ in range(2):
        bench.answer_ahead()
    assert made == ["a"]
    monkeypatch.setattr(module, "rooms_for_answers", lambda *_: (size - 1, 0))
    Bench(replace(plan, cases=cases), Silent()).answer_ahead()
    assert made == ["a"]
