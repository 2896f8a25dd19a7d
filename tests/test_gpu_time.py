"""What a call takes on the device, where its capture succeeds, fails or is broken off."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch

from judge.child import gpu_time as module
from judge.child.gpu_time import gpu_time
from judge.child.protocol import Gauged, ProfiledRow
from judge.reference_run import null_submission
from judge.session import Session
from judge.sm_budget import PARK_KERNEL
from judge.trial import Limits

DEVICE = torch.device("cuda", 0)


class Device:
    """A CUDA device of one stream: a capture makes another one current while it lasts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, replay_ms: list[float]) -> None:
        self.current, self.capturing, self.ended, self.held = "own", False, False, 0
        self.held_replays = 0
        self.busy, self.slept = False, 0
        self.done: list[str] = []  # what was queued, in order
        self.cycles = 0
        self.replay_ms = iter(replay_ms)
        device = self

        class Graph:
            def pool(self) -> tuple[int, int]:
                if not device.ended:
                    raise RuntimeError("without a preceding successful capture")
                return (0, 1)

            def replay(self) -> None:
                device.held_replays += device.held
                device.done.append("call")

        class Event:
            def __init__(self, enable_timing: bool) -> None:
                self.place = 0

            def record(self) -> None:
                self.place = len(device.done)
                device.done.append("record")

            def synchronize(self) -> None:
                device.busy = False

            def query(self) -> bool:
                assert device.done[self.place - 1] == "sleep"
                return not device.busy

            def elapsed_time(self, end: Event) -> float:
                assert device.done[self.place : end.place + 1] == ["record", "call", "record"]
                return next(device.replay_ms)

        stand_ins = {
            "CUDAGraph": Graph,
            "Event": Event,
            "graph": self.capture,
            "synchronize": self.synchronize,
            "_sleep": self.sleep,
            "current_stream": lambda: SimpleNamespace(name=self.current, synchronize=lambda: None),
            "set_stream": lambda stream: setattr(self, "current", stream.name),
        }
        for name, stand_in in stand_ins.items():
            monkeypatch.setattr(torch.cuda, name, stand_in)
        monkeypatch.setattr(module, "profile_calls", self.profile_calls)

    @contextmanager
    def capture(self, graph: object, capture_error_mode: str) -> Iterator[None]:
        """Like torch.cuda.graph: a capture that CUDA broke off cannot be ended."""
        self.current, self.capturing = "capture", True
        try:
            yield
        finally:
            broken, self.capturing = not self.capturing, False
            if broken:
                raise RuntimeError("operation failed due to a previous error during capture")
            self.ended, self.current = True, "own"

    def synchronize(self) -> None:
        """Breaks off a capture."""
        assert not self.held, "the parked blocks would wait for this"
        self.capturing = self.busy = False

    def sleep(self, cycles: int) -> None:
        """Holds the device back, if for long; once before, for a moment, it is loaded."""
        assert bool(self.held) == (cycles > 1)
        self.busy = cycles > 1
        self.slept += 1
        self.cycles = cycles
        self.done.append("sleep")

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold SMs."""
        self.held += 1
        yield
        self.held -= 1

    def profile_calls(self, call: object, count: int, device: torch.device) -> list[ProfiledRow]:
        """A kernel of 30 microseconds a call, and what the budget parks."""
        call()
        assert self.current == "own"
        return [
            ProfiledRow("kernel", "cuda", count, 30.0 * count),
            ProfiledRow(PARK_KERNEL, "cuda", count, 900.0 * count),
            ProfiledRow("aten::mm", "cpu", count, 500.0 * count),
        ]


def refuses_to_be_captured_on(device: Device, held_calls: list[bool]) -> Callable[[], None]:
    """A call that says of each of its calls whether it was queued behind a held device."""

    def call() -> None:
        if device.capturing:
            raise RuntimeError("Cannot prepare for replay during capturing stage.")
        held_calls.append(device.busy)
        device.done.append("call")

    return call


def test_the_median_of_replays_while_sms_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch, [0.1] * 24 + [0.2] * 2 + [0.9] * 24)
    assert gpu_time(lambda: None, DEVICE, device.hold) == Gauged(0.2, "graph")
    assert device.held_replays == 50
    assert device.slept == 51
    assert device.cycles > 20e-6 * 1.9e9  # time for the host to record three events


def test_calls_that_refuse_to_be_captured_are_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch, [0.02] * 20 + [0.03] * 10 + [0.07] * 20)
    held_calls: list[bool] = []
    gauged = gpu_time(refuses_to_be_captured_on(device, held_calls), DEVICE, device.hold)
    assert gauged == Gauged(pytest.approx(0.03), "queue", spoilt=False)
    assert held_calls == [False] * 6 + [True] * 50


def test_slow_calls_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch, [600.0, 700.0, 800.0])
    # five calls take 25 ms of the host's time; three are made, and a look says that it is enough
    clock = iter([0.0, 0.025, 1.0, 3.1])
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    gauged = gpu_time(refuses_to_be_captured_on(device, []), DEVICE, device.hold)
    assert gauged == Gauged(pytest.approx(700.0), "queue", spoilt=False)
    assert device.cycles > 3 * 0.005 * 1.9e9  # three times what a call takes the host, at 1.9 GHz
    clock = iter([0.0, 5 * 0.11])
    gauged = gpu_time(refuses_to_be_captured_on(device, []), DEVICE, device.hold)
    assert gauged == Gauged(pytest.approx(0.03), "profiler", spoilt=False)


@pytest.mark.parametrize(("late_calls", "way"), [(25, "profiler"), (24, "queue")])
def test_calls_that_a_late_host_held_up_do_not_count(
    monkeypatch: pytest.MonkeyPatch, late_calls: int, way: str
) -> None:
    device = Device(monkeypatch, [0.03] * (50 - late_calls))
    calls = itertools.count()

    def call() -> None:
        if device.capturing:
            raise RuntimeError("no")
        device.done.append("call")
        # the first one is late, and the last ones
        if device.held and not 1 <= next(calls) <= 50 - late_calls:
            device.busy = False

    assert gpu_time(call, DEVICE, device.hold) == Gauged(pytest.approx(0.03), way, spoilt=False)


def test_a_capture_that_is_broken_off_spoils_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch, [])

    def waits_for_the_device() -> None:
        if device.capturing:
            torch.cuda.synchronize()
        device.busy = False

    gauged = gpu_time(waits_for_the_device, DEVICE, device.hold)
    assert gauged == Gauged(pytest.approx(0.03), "profiler", spoilt=True)
    assert device.current == "own"


@pytest.mark.parametrize("spoilt", [False, True])
def test_a_spoilt_child_is_replaced(monkeypatch: pytest.MonkeyPatch, spoilt: bool) -> None:
    gauged = Gauged(0.03, "profiler", spoilt=spoilt)
    dropped = []
    monkeypatch.setattr(Session, "_trial", lambda *_: SimpleNamespace(ask=lambda *_: gauged))
    monkeypatch.setattr(Session, "drop_child", lambda _: dropped.append(True))
    session = Session(null_submission(), None, Limits(), None, print, strict=True)
    assert session.gauge() == gauged
    assert dropped == [True] * spoilt
