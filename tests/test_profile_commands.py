"""The profilers' command lines, and which profiler is chosen."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from judge.profiling.commands import (
    ProfilerError,
    Target,
    choose_tool,
    judge_command,
    ncu_command,
    ncu_raw_command,
    nsys_command,
    nsys_stats_command,
)

TARGET = Target(Path("submissions/v01_gemm"), "long_low_gva", None, "auto", 42, 2)
STEM = Path("profiles/v01")


def value_of(command: list[str], option: str) -> str:
    return command[command.index(option) + 1]


def test_the_judge_runs_the_case_alone_with_few_calls() -> None:
    command = judge_command(TARGET)
    assert command[0] == sys.executable
    assert Path(command[1]).name == "run.py"
    assert Path(command[1]).is_file()
    assert value_of(command, "--case") == "long_low_gva"
    assert value_of(command, "--submission") == "submissions/v01_gemm"
    assert value_of(command, "--repetitions") == "2"
    assert value_of(command, "--baseline") == "none"  # else its kernels would be counted too
    assert value_of(command, "--output-format") == "json"
    assert "--cases" not in command
    own = Target(TARGET.submission, "mine", Path("mine.yaml"), "cuda:1", 7, 1)
    assert value_of(judge_command(own), "--cases") == "mine.yaml"
    assert value_of(judge_command(own), "--device") == "cuda:1"
    assert value_of(judge_command(own), "--seed") == "7"


def test_ncu_follows_the_child_and_waits_for_the_timed_calls() -> None:
    command = ncu_command(TARGET, 3, None, STEM)
    judge = judge_command(TARGET)
    assert command[-len(judge) :] == judge
    own = command[: -len(judge)]
    assert own[0] == "ncu"
    assert value_of(own, "--target-processes") == "all"
    assert value_of(own, "--clock-control") == "none"
    assert value_of(own, "--set") == "full"
    assert value_of(own, "--profile-from-start") == "off"
    assert value_of(own, "--launch-skip") == "0"
    assert value_of(own, "--launch-count") == "3"
    assert value_of(own, "--export") == "profiles/v01.ncu-rep"
    assert "--kernel-name" not in own


def test_ncu_can_be_held_to_kernels_by_name() -> None:
    command = ncu_command(TARGET, 2, "kernel_kernel", STEM)
    assert value_of(command, "--kernel-name") == "regex:kernel_kernel"


def test_ncu_prints_the_raw_page_of_the_same_report() -> None:
    command = ncu_raw_command(STEM)
    assert value_of(command, "--import") == "profiles/v01.ncu-rep"
    assert value_of(command, "--page") == "raw"
    assert "--csv" in command


def test_nsys_captures_the_profiler_range_alone() -> None:
    command = nsys_command(TARGET, STEM)
    judge = judge_command(TARGET)
    assert command[-len(judge) :] == judge
    assert command[:2] == ["nsys", "profile"]
    assert "--capture-range=cudaProfilerApi" in command
    assert "--capture-range-end=stop" in command
    assert "--output=profiles/v01" in command
    assert nsys_stats_command(STEM)[-1] == "profiles/v01.nsys-rep"


@pytest.mark.parametrize(
    ("here", "asked", "on_cuda", "chosen"),
    [
        (("ncu", "nsys"), None, True, "ncu"),
        (("nsys",), None, True, "nsys"),
        ((), None, True, "torch"),
        (("ncu", "nsys"), None, False, "torch"),
        (("ncu", "nsys"), "nsys", True, "nsys"),
        ((), "torch", True, "torch"),
    ],
)
def test_the_default_is_the_first_tool_that_is_here(
    monkeypatch: pytest.MonkeyPatch,
    here: tuple[str, ...],
    asked: str | None,
    on_cuda: bool,
    chosen: str,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}" if name in here else None)
    assert choose_tool(asked, on_cuda) == chosen


@pytest.mark.parametrize(
    ("tool", "how"), [("ncu", "comes with the CUDA toolkit"), ("nsys", "nsight-systems-cli")]
)
def test_a_missing_profiler_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tool: str, how: str
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ProfilerError, match=f"{tool} is not on PATH: .*{how}.*--tool torch"):
        choose_tool(tool, True)


def test_ncu_on_a_cpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    with pytest.raises(ProfilerError, match="sees CUDA kernels only"):
        choose_tool("ncu", False)
