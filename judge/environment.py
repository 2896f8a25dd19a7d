"""The machine and the versions that decide the numbers."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path

import torch

from judge.record import Environment
from judge.text import plain
from judge.threads import available_cores

_GIB = 2**30


def capture(device: torch.device) -> Environment:
    """Describe `device` and the installed versions; what cannot be found out is None.

    memory_gib is the GPU's memory, or the machine's on a CPU. Never imports TileLang, which
    would load its compiler into the judge.
    """
    on_gpu = device.type == "cuda"
    properties = torch.cuda.get_device_properties(device) if on_gpu else None
    return Environment(
        device=str(device),
        device_name=plain(properties.name if properties else _cpu_name()),
        sms=properties.multi_processor_count if properties else None,
        memory_gib=properties.total_memory / _GIB if properties else _machine_memory_gib(),
        driver=_driver() if on_gpu else None,
        cuda=torch.version.cuda,
        torch=str(torch.__version__),
        tilelang=installed_version("tilelang"),
        python=platform.python_version(),
        platform=plain(platform.platform()),
        threads=available_cores(),
    )


def installed_version(package: str) -> str | None:
    """Version of an installed distribution, from its metadata; None where it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def nvcc_version() -> str | None:
    """Release of the nvcc on PATH, such as 13.0; None where there is none."""
    try:
        done = subprocess.run(
            ["nvcc", "--version"], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"release ([\d.]+)", done.stdout)
    return found[1] if found else None


def toolchain_note(suite_tilelang: str | None, installed: str | None) -> str | None:
    """One line where a suite was meant for another TileLang release than the installed one.

    Compares the first three numbers, so that 0.1.9.post1 and 0.1.9+cu128 are 0.1.9. None where
    they agree or the suite does not say.
    """
    if suite_tilelang is None:
        return None
    if installed is None:
        return f"cases are meant for TileLang {suite_tilelang}, and TileLang is not installed"
    if _release(suite_tilelang) == _release(installed):
        return None
    return (
        f"cases are meant for TileLang {suite_tilelang}, installed is {installed}: "
        "a kernel right under one can be wrong under the other"
    )


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _cpu_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _machine_memory_gib() -> float | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GIB
    except (AttributeError, ValueError, OSError):  # not every system has these names
        return None


def _driver() -> str | None:
    """Version of the NVIDIA driver, through NVML where its Python module is, else nvidia-smi."""
    try:
        import pynvml
    except ImportError:
        return _driver_from_nvidia_smi()
    try:
        pynvml.nvmlInit()
        version = pynvml.nvmlSystemGetDriverVersion()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return _driver_from_nvidia_smi()
    return version.decode() if isinstance(version, bytes) else version  # bytes before 11.5


def _driver_from_nvidia_smi() -> str | None:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = done.stdout.split()
    return lines[0] if lines else None
