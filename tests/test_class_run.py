"""A run over many uploads, with a judge of one that is made up: what ends it, and what is kept."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from judge.baseline import Choice, Measure, no_baseline
from judge.bench import Plan
from judge.child.process import ChildOptions
from judge.class_run import TRIES, ClassRun, Ended, State, grade_class
from judge.device_probe import DeviceLost
from judge.engines.engine import Began, Died, Event, Finished, Task
from judge.fingerprint import settings_key
from judge.implementations import simple_implementation
from judge.record import Record
from judge.reference_run import null_submission
from judge.repetitions import Repetitions
from judge.roster import Participant
from judge.run_log import RunLog
from judge.sandbox.kinds import Kind, Sandbox
from judge.sources import Listed
from judge.store.schema import StoreFullError
from judge.store.store import Store
from judge.submission import SubmissionError
from judge.suites import load_suites, select_cases
from judge.trial import Limits
from judge.uploads import Place, find_uploads
from tests.make_record import make_environment, public_record

CASES = Path(__file__).resolve().parents[1] / "cases"
NAMES = ("a", "b", "c")


class Quiet:
    """Progress that nobody watches."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *values: None


class StandInEngine:
    """One lane without a process: `measure(name)` gives the record, or raises what a lane does."""

    def __init__(self, measure: Callable[[str], Record]) -> None:
        self._measure = measure
        self._tasks: deque[Task] = deque()
        self.lost = ""
        self.closed = False

    def lanes(self) -> list[str]:
        return [] if self.lost else ["lane"]

    def room(self) -> int:
        return 2 - len(self._tasks)

    def submit(self, task: Task) -> None:
        self._tasks.append(task)

    def wait(self, timeout_s: float) -> list[Event]:
        if not self._tasks:
            return []
        task = self._tasks.popleft()
        events: list[Event] = [Began(task.number, "lane")]
        try:
            record, problem = self._measure(task.submission.name), ""
        except LaneDied:
            return [*events, Died(task.number, "lane", "its lane ended by signal SIGKILL")]
        except DeviceLost as lost:
            record, problem, self.lost = replace(public_record(), interrupted=True), "", str(lost)
        except OSError as error:
            record, problem = None, f"the judge failed: {error}"
        return [*events, Finished(task.number, "lane", record, problem, self.lost, 1.0)]

    def close(self) -> None:
        self.closed = True


class LaneDied(Exception):
    """The lane ends at this submission."""


def run(
    folder: Path, judge: Callable[[str], Record], *, fresh: bool = False
) -> tuple[Ended, list[str]]:
    """Grade three uploads by `judge(name)`; how it ended, and who has a result."""
    for name in NAMES:
        path = folder / "in" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            path.write_text(f"x = '{name}'\n")
    with Store(folder / "store.sqlite") as store:
        engine = StandInEngine(judge)
        class_run = ClassRun(
            make_plan(),
            engine,
            None,
            store,
            {"a": Participant("a", "Ann", "1")},
            Quiet(),
            RunLog(folder / "log.jsonl"),
            fresh,
        )
        try:
            ended = grade_class(class_run, Listed(find_uploads(folder / "in")))
        finally:
            assert engine.closed
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


def test_the_order_of_cases_and_suites_is_no_condition_of_a_result() -> None:
    def plan_of(*names: str) -> Plan:
        suites = load_suites([CASES / f"{name}.yaml" for name in names])
        chosen = [(suite.name, case) for suite, case in select_cases(suites)]
        return replace(make_plan(), suites=suites, cases=chosen)

    plan = plan_of("public", "correctness")
    key = settings_key(plan)
    assert settings_key(plan_of("correctness", "public")) == key
    shuffled = [replace(suite, cases=suite.cases[::-1]) for suite in plan.suites]
    assert settings_key(replace(plan, suites=shuffled, cases=plan.cases[::-1])) == key
    assert settings_key(replace(plan, cases=plan.cases[1:])) != key
    assert settings_key(plan_of("public")) != key
    tighter = replace(plan.cases[0][1], tolerance=1e-4)
    assert settings_key(replace(plan, cases=[("public", tighter), *plan.cases[1:]])) != key


def graded(name: str) -> Record:
    return public_record()


def test_a_judge_that_fails_at_one_goes_on_and_tries_it_again_next_time(tmp_path: Path) -> None:
    def failing(name: str) -> Record:
        if name == "b":
            raise OSError("no log can be written")
        return public_record()

    ended, kept = run(tmp_path, failing)
    assert [o.state for o in ended.outcomes] == [State.GRADED, State.FAILED, State.GRADED]
    assert "no log can be written" in ended.outcomes[1].problem
    assert [o.remarks for o in ended.outcomes] == [(), *[("not on the roster",)] * 2]
    assert kept == ["a", "c"]
    ended, kept = run(tmp_path, graded)
    states = {o.place.participant: o.state for o in ended.outcomes}
    assert states == {"a": State.UNCHANGED, "b": State.GRADED, "c": State.UNCHANGED}
    assert sorted(kept) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            SubmissionError("in: Permission denied"),
            "in: Permission denied; looked at again and again",
        ),
        (ValueError("odd"), "the judge failed: ValueError: odd"),
    ],
)
def test_uploads_that_cannot_be_reached_for_a_while_are_told_of_and_end_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    errors, said = [error], []
    take = Listed.take

    def failing_first(source: Listed) -> Place | None:
        if errors:
            raise errors.pop()
        return take(source)

    monkeypatch.setattr(Listed, "take", failing_first)
    monkeypatch.setattr(Quiet, "said", lambda _, *words: said.append(words), raising=False)
    ended, kept = run(tmp_path, graded)
    assert (len(ended.outcomes), kept) == (3, ["a", "b", "c"])
    assert said == [("uploads", told)]


def test_an_interrupt_drops_the_submission_under_way_alone(tmp_path: Path) -> None:
    def interrupted(name: str) -> Record:
        if name == "b":
            raise KeyboardInterrupt
        return public_record()

    ended, kept = run(tmp_path, interrupted)
    assert (ended.interrupted, ended.lost, kept) == (True, "", ["a"])


def test_who_loses_the_last_device_is_kept_and_ends_the_run(tmp_path: Path) -> None:
    def losing(name: str) -> Record:
        if name == "b":
            raise DeviceLost("the GPU is wedged")
        return public_record()

    ended, kept = run(tmp_path, losing)
    assert (ended.interrupted, ended.lost, kept) == (False, "the GPU is wedged", ["a", "b"])


def test_a_submission_whose_lane_dies_is_tried_once_more(tmp_path: Path) -> None:
    asked: Counter[str] = Counter()

    def dying(name: str) -> Record:
        asked[name] += 1
        if name == "b" or (name == "c" and asked[name] == 1):
            raise LaneDied
        return public_record()

    ended, kept = run(tmp_path, dying)
    assert asked == {"a": 1, "b": TRIES, "c": 2}
    assert sorted(kept) == ["a", "c"]
    (failed,) = [o for o in ended.outcomes if o.state is State.FAILED]
    assert failed.problem == "its lane ended by signal SIGKILL; tried 2 times"


def test_equal_uploads_of_one_participant_are_graded_once(tmp_path: Path) -> None:
    for attempt in ("1", "2", "3"):
        path = tmp_path / "in" / "zoe" / f"{attempt}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# attempt {attempt}\nx = 'z'\n")
    asked: Counter[str] = Counter()

    def failing_first(name: str) -> Record:
        asked[name] += 1
        if name == "zoe-1":
            raise OSError("no log can be written")
        return public_record()

    ended, _ = run(tmp_path, failing_first)
    theirs = {o.place.label: o.state for o in ended.outcomes if o.place.participant == "zoe"}
    assert theirs == {"1": State.FAILED, "2": State.GRADED, "3": State.UNCHANGED}
    assert (asked["zoe-1"], asked["zoe-2"], asked["zoe-3"]) == (1, 1, 0)
    run(tmp_path, failing_first, fresh=True)
    assert (asked["zoe-1"], asked["zoe-2"], asked["zoe-3"]) == (2, 2, 1)


def test_a_run_s_log_tells_what_each_upload_took(tmp_path: Path) -> None:
    run(tmp_path, graded)
    begun, *uploads, end = [
        json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()
    ]
    assert (begun["participant"], end["event"]) == ("a", "end")
    for upload in (begun, *uploads):
        assert (upload["state"], upload["lane"], upload["lane_s"]) == ("graded", "lane", 1.0)
        assert upload["read"] <= upload["began"] <= upload["finished"] <= upload["at"]
        # seven cases of 0.25 s in the made-up record
        assert upload["phases"]["run"] == 7 * 0.25


def test_a_full_disk_ends_the_run_with_the_last_result_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Store.add

    def filling(store: Store, participant: str, *rest: object) -> int:
        store.full = participant == "b"
        return add(store, participant, *rest)

    monkeypatch.setattr(Store, "add", filling)
    with pytest.raises(StoreFullError, match="make room and start again"):
        run(tmp_path, graded)
    with Store(tmp_path / "store.sqlite") as store:
        assert [one.participant for one in store.results()] == ["a", "b"]


def test_equal_uploads_keep_no_lane_from_those_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for attempt in range(9):
        path = tmp_path / "in" / "ann" / f"{attempt}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# attempt {attempt}\nx = 'z'\n")
    handed: list[list[str]] = []
    wait = StandInEngine.wait

    def noting(engine: StandInEngine, timeout_s: float) -> list[Event]:
        handed.append([task.submission.name for task in engine._tasks])
        return wait(engine, timeout_s)

    monkeypatch.setattr(StandInEngine, "wait", noting)
    run(tmp_path, graded)
    assert handed[0] == ["a", "ann-0"]  # one under way, and the next one
    assert handed[1] == ["ann-0", "b"]
