"""Command lines of the profilers around one case, and which profiler there is."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

TOOLS = ("ncu", "nsys", "torch")
_RUN = Path(__file__).resolve().parents[2] / "run.py"
# With the untimed first call three calls go before the profiled ones, as in the lab's own command:
# a submission that captures a CUDA graph has done so by then.
_WARMUP = 2
_TIMEOUT_S = 3600
_HOW_TO_GET = {
    "ncu": (
        "Nsight Compute comes with the CUDA toolkit, often as /usr/local/cuda/bin/ncu: add its "
        "folder to PATH"
    ),
    "nsys": (
        "install Nsight Systems from developer.nvidia.com/nsight-systems, or NVIDIA's package "
        "nsight-systems-cli, and add its folder to PATH"
    ),
}


class ProfilerError(RuntimeError):
    """A profiler that is missing, failed or wrote what cannot be read; the text is one line."""


@dataclass(frozen=True)
class Target:
    """The one case to profile.

    cases_file: a suite file in place of the ones in cases/. device: as for --device. calls: timed
    calls, which are the profiled ones.
    """

    submission: Path
    case: str
    cases_file: Path | None
    device: str
    seed: int
    calls: int


def choose_tool(asked: str | None, on_cuda: bool) -> str:
    """The tool asked for, else the first of ncu, nsys and torch that is here and can work.

    on_cuda: whether the case runs on a GPU; ncu and nsys see nothing else. Raises ProfilerError
    where the tool asked for is missing.
    """
    if asked is None:
        return next(
            (tool for tool in ("ncu", "nsys") if on_cuda and shutil.which(tool)),
            "torch",
        )
    if asked != "torch" and shutil.which(asked) is None:
        raise ProfilerError(f"{asked} is not on PATH: {_HOW_TO_GET[asked]}; or use --tool torch")
    if asked != "torch" and not on_cuda:
        raise ProfilerError(f"{asked} sees CUDA kernels only, and this is a CPU: use --tool torch")
    return asked


def judge_command(target: Target) -> list[str]:
    """The judge on this case alone: few calls, no baseline beside it, its record on stdout."""
    cases = ["--cases", str(target.cases_file)] if target.cases_file else []
    return [
        *(sys.executable, str(_RUN), "--case", target.case, *cases),
        *("--submission", str(target.submission), "--device", target.device),
        *("--seed", str(target.seed), "--warmup", str(_WARMUP)),
        *("--repetitions", str(target.calls), "--timeout", str(_TIMEOUT_S)),
        *("--baseline", "none", "--output-format", "json"),
    ]


def ncu_command(target: Target, launches: int, kernel: str | None, stem: Path) -> list[str]:
    """Nsight Compute around the case; writes <stem>.ncu-rep and <stem>.log.

    It follows the child that runs the submission and waits for cudaProfilerStart, which encloses
    the timed calls there: whatever is launched then is the submission's, so nothing needs to be
    skipped, and the launches are counted from the first timed call. kernel: only kernels whose
    name matches this regular expression. Clocks stay as they are, since a MIG slice cannot lock
    them. Options: Nsight Compute CLI, "Command Line Options".
    """
    return [
        *("ncu", "--target-processes", "all", "--clock-control", "none", "--set", "full"),
        *("--profile-from-start", "off"),
        *(("--kernel-name", f"regex:{kernel}") if kernel else ()),
        *("--launch-skip", "0", "--launch-count", str(launches)),
        *("--force-overwrite", "--export", f"{stem}.ncu-rep", "--log-file", f"{stem}.log"),
        *judge_command(target),
    ]


def ncu_raw_command(stem: Path) -> list[str]:
    """Print the report's raw page as CSV: a row a launch, a column a metric, base units."""
    return [
        *("ncu", "--import", f"{stem}.ncu-rep", "--page", "raw", "--csv"),
        *("--print-units", "base"),
    ]


def nsys_command(target: Target, stem: Path) -> list[str]:
    """Nsight Systems around the case; writes <stem>.nsys-rep with the timed calls' timeline.

    It follows child processes by itself and never touches clocks. The CPU is not sampled, which
    needs rights that a container seldom has. Options: Nsight Systems User Guide, "CLI Profile
    Command Switch Options".
    """
    return [
        *("nsys", "profile", "--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none"),
        *("--capture-range=cudaProfilerApi", "--capture-range-end=stop"),
        *("--force-overwrite=true", f"--output={stem}"),
        *judge_command(target),
    ]


def nsys_stats_command(stem: Path) -> list[str]:
    """Print the report's time by kernel as CSV."""
    return [
        *("nsys", "stats", "--report", "cuda_gpu_kern_sum", "--format", "csv"),
        *("--force-export=true", f"{stem}.nsys-rep"),
    ]
