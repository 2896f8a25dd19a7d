"""A run over many uploads, with a judge of one that is made up: what ends it, and what is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from judge import class_run
from judge.baseline import Choice, Measure, no_baseline
from judge.bench import Plan
from judge.child.process import ChildOptions
from judge.class_run import Ended, State, grade_class
from judge.fingerprint import settings_key
from judge.implementations import simple_implementation
from judge.record import Record
from judge.reference_run import null_submission
from judge.repetitions import Repetitions
from judge.roster import Participant
from judge.sandbox.kinds import Kind, Sandbox
from judge.store.schema import StoreFullError
from judge.store.store import Store
from judge.trial import Limits
from judge.uploads import find_uploads
from tests.make_record import make_environment, public_record

NAMES = ("a", "b", "c")


class Quiet:
    """Progress that nobody watches."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *values: None


class StandInBench(SimpleNamespace):
    """A bench without children."""

    def __init__(self, plan: Plan, progress: object) -> None:
        super().__init__(lost="", closed=False)

    def drop_children(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def run(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    judge: Callable[[str, StandInBench, Store], Record],
) -> tuple[Ended, list[str]]:
    """Grade three uploads by `judge(name, bench, store)`; how it ended, and who has a result."""
    for name in NAMES:
        path = folder / "in" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"x = '{name}'\n")
    with Store(folder / "store.sqlite") as store:

        def grade(plan: Plan, progress: object, bench: StandInBench) -> Record:
            return judge(plan.submission.name, bench, store)

        monkeypatch.setattr(class_run, "Bench", StandInBench)
        monkeypatch.setattr(class_run, "grade", grade)
        places = find_uploads(folder / "in")
        roster = {"a": Participant("a", "Ann", "1")}
        try:
            ended = grade_class(make_plan(), places, roster, store, Quiet(), fresh=False)
        finally:
            kept = [graded.participant for graded in store.results()]
        return ended, kept


def make_plan() -> Plan:
    return Plan(
        submission=null_submission(),
        suites=[],
        cases=[],
        device=torch.device("cpu"),
        environment=make_environment(),
        child=ChildOptions("cpu", "", 1, 1 << 30, sandbox=Sandbox(Kind.NONE)),
        seed=42,
        count=Repetitions(1, 3),
        limits=Limits(),
        choice=Choice(no_baseline("none"), ""),
        gate=True,
        strict=True,
    )


def test_how_a_baseline_is_measured_and_of_how_many_sms_are_conditions_of_a_result() -> None:
    plan = make_plan()
    simple = simple_implementation("cpu")

    def measured(measure: Measure, version: str) -> Plan:
        return replace(
            plan,
            choice=Choice(None, "", measure),
            public=[replace(simple, name="fla", version=version)],
        )

    keys = [
        settings_key(measured(Measure.REFERENCE, "1")),
        settings_key(measured(Measure.LIVE, "1")),
        settings_key(measured(Measure.LIVE, "2")),
        settings_key(plan),
        settings_key(replace(plan, environment=replace(plan.environment, sms_of=200))),
    ]
    assert len(set(keys)) == len(keys)
    # installed implementations that are not timed change nothing
    assert settings_key(measured(Measure.REFERENCE, "2")) == keys[0]


def test_a_judge_that_fails_at_one_goes_on_and_tries_it_again_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(name: str, bench: StandInBench, store: Store) -> Record:
        if name == "b":
            raise OSError("no log can be written")
        return public_record()

    ended, kept = run(tmp_path, monkeypatch, failing)
    assert [o.state for o in ended.outcomes] == [State.GRADED, State.FAILED, State.GRADED]
    assert "no log can be written" in ended.outcomes[1].problem
    assert [o.remarks for o in ended.outcomes] == [(), (), ("not on the roster",)]
    assert kept == ["a", "c"]
    ended, kept = run(tmp_path, monkeypatch, lambda name, bench, store: public_record())
    assert [o.state for o in ended.outcomes] == [State.UNCHANGED, State.GRADED, State.UNCHANGED]
    assert sorted(kept) == ["a", "b", "c"]


def test_an_interrupt_drops_the_submission_under_way_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(name: str, bench: StandInBench, store: Store) -> Record:
        return replace(public_record(), interrupted=name == "b")

    ended, kept = run(tmp_path, monkeypatch, interrupted)
    assert (ended.interrupted, ended.lost, kept) == (True, "", ["a"])


def test_who_loses_the_device_is_kept_and_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def losing(name: str, bench: StandInBench, store: Store) -> Record:
        bench.lost = "the GPU is wedged" if name == "b" else ""
        return replace(public_record(), interrupted=name == "b")

    ended, kept = run(tmp_path, monkeypatch, losing)
    assert (ended.interrupted, ended.lost, kept) == (False, "the GPU is wedged", ["a", "b"])


def test_a_full_disk_ends_the_run_with_the_last_result_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def filling(name: str, bench: StandInBench, store: Store) -> Record:
        seen.append(name)
        store.full = name == "b"
        return public_record()

    with pytest.raises(StoreFullError, match="make room and start again"):
        run(tmp_path, monkeypatch, filling)
    assert seen == ["a", "b"]
    with Store(tmp_path / "store.sqlite") as store:
        assert [graded.participant for graded in store.results()] == ["a", "b"]
