"""The core on which calls are timed: the quickest one, of those allowed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from judge.child.cores import QuickestCore


class Cores:
    """Cores of which some take longer over the same work; where the thread is told to run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, allowed: set[int]) -> None:
        self.now, self.slow, self.tried = set(allowed), set(), set()
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(self.now), raising=False)
        monkeypatch.setattr(os, "sched_setaffinity", self._set, raising=False)
        monkeypatch.setattr(time, "perf_counter_ns", lambda: self.clock)
        self.clock = 0

    def work(self) -> None:
        (core,) = self.now
        self.tried.add(core)
        self.clock += 2000 if core in self.slow else 1000

    def _set(self, _: int, cores: set[int]) -> None:
        self.now = set(cores)


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cores]:
    yield Cores(monkeypatch, {3, 5, 8, 9})


def test_quickest_core_is_chosen_for_a_block_and_left_behind_it(four: Cores) -> None:
    core = QuickestCore(four.work)
    for quick in (8, 3):
        four.slow = {3, 5, 8, 9} - {quick}
        with core.chosen_anew():
            assert four.now == {quick}
        assert four.now == {3, 5, 8, 9}
    with pytest.raises(KeyError), core.chosen_anew():
        raise KeyError
    assert four.now == {3, 5, 8, 9}


def test_a_core_is_kept_until_it_is_left(four: Cores) -> None:
    core = QuickestCore(four.work)
    four.slow = {3, 5, 8}
    core.settle()
    four.slow = {9}
    core.settle()
    assert four.now == {9}
    with core.chosen_anew():
        assert four.now < {3, 5, 8}
    core.settle()
    assert four.now < {3, 5, 8}
    core.leave()
    core.leave()
    assert four.now == {3, 5, 8, 9}


@pytest.mark.parametrize(("cores", "tried"), [(1, 1), (16, 16), (17, 9), (128, 16)])
def test_of_many_cores_some_are_tried(
    monkeypatch: pytest.MonkeyPatch, cores: int, tried: int
) -> None:
    machine = Cores(monkeypatch, set(range(cores)))
    QuickestCore(machine.work).settle()
    assert len(machine.tried) == tried
    assert len(machine.now) == 1


def test_a_thread_is_kept_where_the_system_says() -> None:
    allowed = os.sched_getaffinity(0)
    with QuickestCore(lambda: None).chosen_anew():
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == allowed
