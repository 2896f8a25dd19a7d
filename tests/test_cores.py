"""The core on which calls are timed: one where launches are quick, left only for a better one."""

from __future__ import annotations

import errno
import os
import time

import pytest

from judge.child import cores
from judge.child.cores import QuickestCore, quickest_core

QUICK_NS, SLOW_NS, AWAITED_NS = 10_000, 20_000, 3_000_000


class Machine:
    """Cores of which some are slow and some taken; where the thread runs, and may run.

    On a core that is taken the thread waits when it arrives, and works at full speed then.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, allowed: set[int]) -> None:
        self.allowed, self.mask = set(allowed), set(allowed)
        self.core = min(allowed)
        self.slow: set[int] = set()
        self.taken: set[int] = set()
        self.worked_on: set[int] = set()
        self.clock = 10**12
        self._arrived = False
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(self.mask), raising=False)
        monkeypatch.setattr(os, "sched_setaffinity", self._set, raising=False)
        monkeypatch.setattr(time, "perf_counter_ns", lambda: self.clock)
        monkeypatch.setattr(cores, "core_now", lambda: self.core)

    def work(self) -> None:
        self.worked_on.add(self.core)
        self.clock += AWAITED_NS if self._arrived and self.core in self.taken else 0
        self._arrived = False
        self.clock += SLOW_NS if self.core in self.slow else QUICK_NS

    def later(self, milliseconds: float) -> None:
        self.clock += round(milliseconds * 1e6)

    def _set(self, _: int, mask: set[int]) -> None:
        if not set(mask) & self.allowed:
            raise OSError(errno.EINVAL, "no such core")
        self.mask = set(mask)
        if self.core not in self.mask:
            self.core, self._arrived = min(self.mask), True


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch, {3, 5, 8, 9})


def test_a_quick_core_is_kept(four: Machine) -> None:
    core = QuickestCore(four.work)
    four.core = 8
    core.settle()
    assert four.mask == {8}
    core.leave()
    assert four.mask == {3, 5, 8, 9}


def test_a_slow_core_is_left_for_a_quick_one(four: Machine) -> None:
    four.slow = {3, 5, 9}
    QuickestCore(four.work).settle()
    assert four.mask == {8}


def test_cores_that_are_taken_are_not_chosen(four: Machine) -> None:
    four.slow, four.taken = {3, 8}, {5}
    QuickestCore(four.work).settle()
    assert four.mask == {9}


def test_where_all_others_are_taken_the_thread_stays(four: Machine) -> None:
    four.slow, four.taken = {3}, {5, 8, 9}
    QuickestCore(four.work).settle()
    assert four.mask == {3}


def test_a_core_that_turns_slow_is_left_when_it_is_looked_at_again(four: Machine) -> None:
    core = QuickestCore(four.work)
    core.settle()
    four.slow = {3}
    core.settle()
    assert four.mask == {3}, "not looked at yet"
    four.later(101)
    core.settle()
    assert four.mask < {5, 8, 9}
    four.slow = set(four.mask)
    core.settle(now=True)
    assert four.mask == four.slow, "others were tried a moment ago"
    four.later(101)
    core.settle(now=True)
    assert not four.mask & four.slow


def test_looking_and_trying_take_two_percent_of_the_time_at_most(four: Machine) -> None:
    core = QuickestCore(four.work)
    core.settle()
    four.slow = set(four.allowed)
    began, spent, tries = four.clock, 0, 0
    while four.clock < began + 10**10:
        four.later(5)
        before = four.clock
        four.worked_on.clear()
        core.settle()
        spent += four.clock - before
        tries += four.worked_on == four.allowed
    assert tries > 2
    assert spent < (0.02 + 0.02) * 10**10


def test_one_look_at_a_core_that_is_still_quick_tries_no_other(four: Machine) -> None:
    core = QuickestCore(four.work)
    core.settle()
    four.worked_on.clear()
    four.later(500)
    core.settle()
    assert four.worked_on == {3}


def test_cores_that_are_gone_make_no_call_fail(four: Machine) -> None:
    core = QuickestCore(four.work)
    core.settle()
    four.allowed = {11}
    four.later(500)
    core.settle()
    core.leave()
    four.allowed = {3, 5, 8, 9}
    core.settle()
    assert four.mask == {3}


@pytest.mark.parametrize(("count", "tried"), [(1, 1), (16, 16), (17, 16), (128, 16)])
def test_of_many_cores_some_are_tried(
    monkeypatch: pytest.MonkeyPatch, count: int, tried: int
) -> None:
    machine = Machine(monkeypatch, set(range(count)))
    QuickestCore(machine.work).settle()
    assert len(machine.worked_on) == tried


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_a_thread_is_kept_where_the_system_says() -> None:
    allowed = os.sched_getaffinity(0)
    core = QuickestCore(lambda: None)
    core.settle()
    assert len(os.sched_getaffinity(0)) == 1
    core.leave()
    assert os.sched_getaffinity(0) == allowed
    with quickest_core(cores.torch.device("cpu")):
        assert os.sched_getaffinity(0) == allowed
