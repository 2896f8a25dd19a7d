"""A run of several lanes, of which one loses its device: who is told, and what is kept."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from judge.class_run import ClassRun, Ended, State, grade_class
from judge.engines.engine import Began, Died, Event, Finished, Task
from judge.run_log import RunLog
from judge.sources import Listed
from judge.store.store import Store
from judge.uploads import find_uploads
from tests.make_record import public_record
from tests.test_class_run import Quiet, make_plan

WEDGED = "the GPU is wedged"


class Lanes:
    """Lanes without processes. what(name, nth): "right", "lost" or "died" at its nth time."""

    def __init__(self, names: list[str], what: Callable[[str, int], str]) -> None:
        self._names = names
        self._what = what
        self._tasks: deque[Task] = deque()
        self.asked: Counter[str] = Counter()

    def lanes(self) -> list[str]:
        return self._names

    def room(self) -> int:
        return max(0, len(self._names) - len(self._tasks))

    def submit(self, task: Task) -> None:
        self._tasks.append(task)

    def wait(self, timeout_s: float) -> list[Event]:
        if not self._tasks:
            return []
        task, lane = self._tasks.popleft(), self._names[0]
        number, name = task.number, task.submission.name
        self.asked[name] += 1
        what = self._what(name, self.asked[name])
        began = Began(number, lane)
        if what == "died":
            return [began, Died(number, lane, "its lane ended by signal SIGKILL")]
        lost = WEDGED if what == "lost" else ""
        self._names = self._names[1:] if lost else self._names
        record = replace(public_record(), interrupted=bool(lost))
        return [began, Finished(number, lane, record, "", lost, 1.0)]

    def close(self) -> None:
        pass


class Listening(Quiet):
    """Progress that keeps what lanes say."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def said(self, lane: str, text: str) -> None:
        self.lines.append(f"{lane}: {text}")


def run(
    folder: Path, lanes: Lanes, uploads: str = "ab"
) -> tuple[Ended, list[str], dict[str, bool]]:
    """How it ended, what was said, and whose kept record is how much of one."""
    (folder / "in").mkdir()
    for name in uploads:
        (folder / "in" / f"{name}.py").write_text(f"x = '{name}'\n")
    with Store(folder / "store.sqlite") as store:
        heard = Listening()
        class_run = ClassRun(
            make_plan(), lanes, None, store, None, heard, RunLog(None), fresh=False
        )
        ended = grade_class(class_run, Listed(find_uploads(folder / "in")))
        kept = {one.participant: one.record.interrupted for one in store.results()}
    return ended, heard.lines, kept


def test_who_loses_one_of_several_devices_is_measured_once_more(tmp_path: Path) -> None:
    def first_time(name: str, nth: int) -> str:
        return "lost" if (name, nth) == ("a", 1) else "right"

    lanes = Lanes(["GPU-1", "GPU-2"], first_time)
    ended, said, kept = run(tmp_path, lanes)
    assert lanes.asked == {"a": 2, "b": 1}
    assert said == [f"GPU-1: this lane is gone: {WEDGED}; a is measured once more by another"]
    assert kept == {"a": False, "b": False}
    assert (ended.interrupted, ended.lost) == (False, "")


def test_who_loses_a_second_device_is_kept_as_it_is(tmp_path: Path) -> None:
    def always_a(name: str, nth: int) -> str:
        return "lost" if name == "a" else "right"

    lanes = Lanes(["GPU-1", "GPU-2", "GPU-3"], always_a)
    ended, said, kept = run(tmp_path, lanes)
    assert lanes.asked == {"a": 2, "b": 1}
    assert said == [
        f"GPU-1: this lane is gone: {WEDGED}; a is measured once more by another",
        f"GPU-2: this lane is gone: {WEDGED}",
    ]
    assert kept == {"a": True, "b": False}
    assert {outcome.state for outcome in ended.outcomes} == {State.GRADED}
    assert (ended.interrupted, ended.lost) == (False, "")


def test_a_lane_that_died_under_it_counts_as_a_try(tmp_path: Path) -> None:
    def died_then_lost(name: str, nth: int) -> str:
        return "right" if name == "b" else ("died", "lost")[nth - 1]

    lanes = Lanes(["GPU-1", "GPU-2"], died_then_lost)
    _, _, kept = run(tmp_path, lanes)
    assert lanes.asked == {"a": 2, "b": 1}
    assert kept == {"a": True, "b": False}


def test_who_loses_the_last_device_is_kept_and_is_not_waited_for(tmp_path: Path) -> None:
    lanes = Lanes(["GPU-1"], lambda name, nth: "lost")
    ended, said, kept = run(tmp_path, lanes)
    assert lanes.asked == {"a": 1}
    assert said == [f"GPU-1: this lane is gone: {WEDGED}"]
    assert kept == {"a": True}
    assert ended.lost == WEDGED
