"""What NVML says of a GPU, told by a stand-in, and when a row is noisy."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest

from judge.conditions import noise, sample_conditions
from judge.record import Conditions
from judge.timing import summarize

QUIET = Conditions(1980, 3201, 40, 300.0, [], [])


class NVMLError(Exception):
    """As pynvml's."""


def nvml(reasons: int, pids: list[int]) -> SimpleNamespace:
    """A pynvml that knows one GPU, of UUID "known"."""

    def handle(uuid: str) -> str:
        if uuid != "GPU-known":
            raise NVMLError("not found")
        return "handle"

    return SimpleNamespace(
        NVMLError=NVMLError,
        NVML_CLOCK_SM=1,
        NVML_CLOCK_MEM=2,
        NVML_TEMPERATURE_GPU=0,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetHandleByUUID=handle,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda _: reasons,
        nvmlDeviceGetClockInfo=lambda _, kind: {1: 1980, 2: 3201}[kind],
        nvmlDeviceGetTemperature=lambda _, kind: 41,
        nvmlDeviceGetPowerUsage=lambda _: 312_500,
        nvmlDeviceGetComputeRunningProcesses=lambda _: [SimpleNamespace(pid=pid) for pid in pids],
    )


@pytest.mark.parametrize(
    ("reasons", "named"),
    [
        (0x1 | 0x2 | 0x100, []),  # idle, application clocks, display: nobody is held back
        (0x4, ["software power cap"]),
        (0x1 | 0x20 | 0x40, ["software thermal slowdown", "hardware thermal slowdown"]),
        (0x1000, ["reason 0x1000"]),
    ],
)
def test_throttle_reasons(monkeypatch: pytest.MonkeyPatch, reasons: int, named: list[str]) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml(reasons, []))
    assert sample_conditions("known") == Conditions(1980, 3201, 41, 312.5, named, [])


def test_other_processes_are_neither_the_judge_nor_its_children(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml(0, [os.getpid(), 1]))
    assert sample_conditions("known").other_processes == [1]
    # numbers of another process namespace, where the judge has another number too
    monkeypatch.setitem(sys.modules, "pynvml", nvml(0, [1, 2]))
    assert sample_conditions("known").other_processes == []


def test_no_nvml_and_no_such_device_are_no_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml(0, []))
    assert sample_conditions("another") is None
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert sample_conditions("known") is None


def test_a_refused_question_leaves_the_answers_to_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(_: object) -> object:
        raise NVMLError("insufficient permissions")

    sparing = nvml(0x4, [os.getpid(), 1])
    sparing.nvmlDeviceGetComputeRunningProcesses = refused
    monkeypatch.setitem(sys.modules, "pynvml", sparing)
    expected = Conditions(1980, 3201, 41, 312.5, ["software power cap"], [])
    assert sample_conditions("known") == expected
    sparing.nvmlDeviceGetCurrentClocksThrottleReasons = refused
    assert sample_conditions("known") == Conditions(1980, 3201, 41, 312.5, [], [])


@pytest.mark.parametrize(
    ("samples", "noisy"),
    [
        ([1.0] * 10 + [1.06] * 10, False),  # 0.06 of 0.05 · 1.03 + 0.02 ms
        ([1.0] * 10 + [1.08] * 10, True),  # 0.08 of 0.05 · 1.04 + 0.02 ms
        ([0.1] * 10 + [0.12] * 10, False),  # short calls are mostly the host's
        ([0.1] * 10 + [0.13] * 10, True),
        ([1.0] * 100 + [9.0] * 5, False),  # a few outliers are the median's business
    ],
)
def test_spread_above_the_bound_is_noise(samples: list[float], noisy: bool) -> None:
    assert bool(noise(summarize(samples), [QUIET, None])) is noisy


def test_what_the_device_did_is_noise() -> None:
    timing = summarize([1.0])
    assert noise(timing, [None, None]) == noise(timing, [QUIET, QUIET]) == ""
    hot = Conditions(1200, 3201, 90, 700.0, ["hardware thermal slowdown"], [])
    shared = Conditions(1980, 3201, 40, 300.0, [], [77])
    assert noise(timing, [shared, hot]) == (
        "other processes on the GPU (77); throttled (hardware thermal slowdown)"
    )
