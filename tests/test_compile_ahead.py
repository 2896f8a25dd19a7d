"""Kernels compiled ahead: what a pool finds, where it leaves them, and what becomes of errors."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from judge.caches import TARGET_VARIABLES, submission_cache
from judge.class_run import ClassRun, State, grade_class
from judge.engines.compile_ahead import Compiled, CompileSetup, CompileStage
from judge.engines.devices import own_cores
from judge.engines.engine import new_setup
from judge.engines.local import LaneDevice, LocalEngine
from judge.profiles import PROFILES
from judge.run_log import RunLog
from judge.sandbox.kinds import choose_sandbox
from judge.sources import Listed
from judge.store.store import Store
from judge.submission import ENTRY, Submission, submission_from
from judge.uploads import Place
from judge.verdict import Verdict
from tests.checking import HEAD, SMOKE, forward, kernel, smoke_cases
from tests.test_class_run import Quiet
from tests.trial import cpu_plan

pytestmark = pytest.mark.skipif(
    shutil.which("nvcc") is None, reason="needs nvcc, which TileLang compiles with"
)
LIMIT_S = 500.0
GOOD = HEAD + kernel() + forward()
BAD = HEAD + kernel("T.no_such_call(v)") + forward()


def tilelang_submission(name: str, source: str) -> Submission:
    return submission_from(name, name, ENTRY, {ENTRY: source.encode()})


@pytest.fixture(autouse=True)
def machine_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own, and no target named, under which TileLang would compile on a CPU."""
    monkeypatch.setenv("GDN_JUDGE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache" / "logs").mkdir(parents=True)
    for name in TARGET_VARIABLES:
        monkeypatch.delenv(name, raising=False)


def stage_of(cores: tuple[int, ...]) -> CompileStage:
    cases = [("smoke", case) for case in smoke_cases()[:1]]
    setup = CompileSetup(cases, PROFILES["h200"], choose_sandbox("auto"))
    return CompileStage(setup, [cores])


def test_kernels_lie_in_the_submission_s_cache_and_errors_are_told() -> None:
    stage = stage_of(tuple(own_cores()[:1]))
    good, bad = tilelang_submission("good", GOOD), tilelang_submission("bad", BAD)
    done: list[Compiled] = []
    deadline = time.monotonic() + LIMIT_S
    try:
        stage.submit(1, good)
        stage.submit(2, bad)
        while len(done) < 2 and time.monotonic() < deadline:
            done += stage.poll()
            time.sleep(0.1)
    finally:
        stage.close()
    first, second = done
    assert (first.number, first.errors) == (1, {})
    assert second.number == 2
    assert list(second.errors) == [smoke_cases()[0].name]
    assert "no_such_call" in second.errors[smoke_cases()[0].name]
    assert list(submission_cache(good.digest).rglob("*.so"))
    assert first.seconds > 0


def test_on_a_cpu_what_does_not_compile_says_so_and_what_does_is_not_run(tmp_path: Path) -> None:
    places = []
    for name, source in (("bad", BAD), ("good", GOOD)):
        path = tmp_path / f"{name}.py"
        path.write_text(source)
        places.append(Place(path, name, ""))
    plan = cpu_plan(SMOKE, baseline="none", protocol="lab")
    plan = replace(plan, cases=plan.cases[:1])
    engine = LocalEngine(new_setup(plan), [LaneDevice("cpu-1", "")])
    log = RunLog(None)
    with Store(tmp_path / "store.sqlite") as store:
        run = ClassRun(plan, engine, stage_of(()), store, None, Quiet(), log, fresh=False)
        ended = grade_class(run, Listed(places))
    assert [outcome.state for outcome in ended.outcomes] == [State.GRADED] * 2
    results = {o.place.participant: o.record.results[0] for o in ended.outcomes}
    assert results["good"].verdict is Verdict.NOT_RUN
    assert results["bad"].verdict is Verdict.COMPILE_ERROR
    assert "no_such_call" in results["bad"].detail
