"""The environment variables that a child gets: the judge's, without secrets, and its folders."""

from __future__ import annotations

import os
import re
from pathlib import Path

from judge.caches import compiler_variables

_SECRET_VARIABLE = re.compile(
    r"TOKEN|SECRET|PASSW|CREDENTIAL|(API|ACCESS|PRIVATE)_?KEY|AUTH|COOKIE|^GDN_JUDGE_",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(r"://[^/\s@]*:[^/\s@]*@")  # a password inside a URL
# Set by ncu and nsys for the processes that they follow; none is a secret, though one is called
# NV_TPS_LAUNCH_TOKEN.
_PROFILER_VARIABLES = (
    *("NV_TPS_", "NV_NSIGHT_", "NV_COMPUTE_PROFILER_", "NVIDIA_PROCESS_INJECTION_"),
    *("NVIDIA-PROCESS-TRACKING", "NSYS_", "QUADD_"),
)
_USER = "submission"


def followed_by_profiler() -> bool:
    """Whether ncu or nsys runs this process, and so its children."""
    return any(name.startswith(_PROFILER_VARIABLES) for name in os.environ)


def child_variables(
    folder: Path,
    kernels: Path,
    cache: Path,
    *,
    threads: int,
    visible_devices: str | None,
    sms: int | None,
) -> dict[str, str]:
    """All variables of a child.

    folder: its own. kernels, cache: its copies of the judge's compiled kernels and of its
    submission's, in that folder. threads, visible_devices, sms: as in ChildOptions.
    """
    variables = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(_PROFILER_VARIABLES)
        or not (_SECRET_VARIABLE.search(name) or _SECRET_VALUE.search(value))
    }
    if not followed_by_profiler():  # its library in the child meets it in their common TMPDIR
        variables["TMPDIR"] = str(folder / "tmp")
        variables |= {"HOME": str(folder), "USER": _USER, "LOGNAME": _USER}
    variables |= {
        "TILELANG_CACHE_DIR": str(kernels),
        "TILELANG_TMP_DIR": str(kernels / "tmp"),
        "CUDA_CACHE_PATH": compiler_variables(cache)["CUDA_CACHE_PATH"],
        "OMP_NUM_THREADS": str(threads),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if visible_devices is not None:
        variables["CUDA_VISIBLE_DEVICES"] = visible_devices
    if sms is not None:
        # The most there can be: a stream in one queue with a parked kernel would wait for it.
        variables["CUDA_DEVICE_MAX_CONNECTIONS"] = "32"
    return variables
