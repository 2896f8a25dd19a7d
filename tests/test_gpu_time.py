"""What a call takes on the device, where its capture succeeds, fails or is broken off."""

from __future__ import annotations

from collections.abc import Iterator
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
        self.replay_ms = iter(replay_ms)
        device = self

        class Graph:
            def pool(self) -> tuple[int, int]:
                if not device.ended:
                    raise RuntimeError("without a preceding successful capture")
                return (0, 1)

            def replay(self) -> None:
                device.held_replays += device.held

        class Event:
            def __init__(self, enable_timing: bool) -> None: ...

            def record(self) -> None: ...

            def synchronize(self) -> None:
                device.busy = False

            def query(self) -> bool:
                return not device.busy

            def elapsed_time(self, end: object) -> float:
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


def test_the_median_of_replays_while_sms_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch, [0.1] * 24 + [0.2] * 2 + [0.9] * 24)
    assert gpu_time(lambda: None, DEVICE, device.hold) == Gauged(0.2, "graph")
    assert device.held_replays == 50


def test_calls_that_refuse_to_be_captured_are_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch, [1.5])  # 50 of them
    held_calls: list[bool] = []

    def replays_a_graph_of_its_own() -> None:
        if device.capturing:
            raise RuntimeError("Cannot prepare for replay during capturing stage.")
        held_calls.append(device.busy)

    gauged = gpu_time(replays_a_graph_of_its_own, DEVICE, device.hold)
    assert gauged == Gauged(pytest.approx(0.03), "queue", spoilt=False)
    assert device.slept == 2
    assert held_calls == [False] * 4 + [True] * 50


def test_slow_calls_are_queued_by_the_few(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch, [0.6])  # 4 of them
    clock = iter([0.0, 3 * 0.024])  # three take 72 ms of the host's time, four fit into 100
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: next(clock)))

    def refuses_to_be_captured() -> None:
        if device.capturing:
            raise RuntimeError("no")

    gauged = gpu_time(refuses_to_be_captured, DEVICE, device.hold)
    assert gauged == Gauged(pytest.approx(0.15), "queue", spoilt=False)
    clock = iter([0.0, 3 * 0.04])
    gauged = gpu_time(refuses_to_be_captured, DEVICE, device.hold)
    assert gauged == Gauged(pytest.approx(0.03), "profiler", spoilt=False)


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
