"""What an exception of the submission means: its last line, and what kind of failure it is."""

from __future__ import annotations

import os
import re
import traceback
from pathlib import PurePath

from judge.caches import TARGET_VARIABLES
from judge.child.protocol import Failed

_COMPILER_PACKAGES = ("tilelang", "tvm", "tvm_ffi", "triton")
_WANTS_CUDA = (
    "not compiled with cuda",
    "no cuda gpus are available",
    "found no nvidia driver",
    "no nvidia driver",
    "cuda driver initialization failed",
    "expected cuda",
    "libcuda.so",
    "no registered target detector found an available target",
)
_MAX_ERROR_CHARACTERS = 2000
_MAX_READ = 1 << 20
_TELLING = re.compile(r"\b(error|fatal)\b", re.IGNORECASE)


def describe(error: BaseException, device_type: str) -> Failed:
    """Classify an exception that left the submission's code.

    compiling: its traceback passes through TileLang, TVM or Triton, and not through the launch of
    a compiled kernel. needs_cuda: there is no CUDA device here and the exception says so, or
    comes from a compiler that had no device to build for and was told of no target.
    """
    frames = traceback.extract_tb(error.__traceback__)
    in_compiler = any(_is_compiler(frame.filename) for frame in frames)
    launching = any(
        frame.name == "__call__" and frame.filename.endswith("tilelang/jit/kernel.py")
        for frame in frames
    )
    compiling = in_compiler and not launching
    last_line = _last_line(error, compiling)
    wants_cuda = any(words in last_line.lower() for words in _WANTS_CUDA)
    on_cuda_error = "CUDA error" in last_line or "CUDA_ERROR" in last_line
    told_target = any(os.environ.get(name) for name in TARGET_VARIABLES)
    return Failed(
        error=last_line[:_MAX_ERROR_CHARACTERS],
        compiling=compiling and not on_cuda_error,
        needs_cuda=device_type == "cpu" and (wants_cuda or (in_compiler and not told_target)),
    )


def _is_compiler(filename: str) -> bool:
    return any(part in _COMPILER_PACKAGES for part in PurePath(filename).parts)


def _last_line(error: BaseException, compiling: bool) -> str:
    """Type and message on one line; of a compiler's pages, the line that tells."""
    try:
        message = str(error).encode("utf-8", "replace").decode()
    except BaseException:
        message = ""
    lines = [line.strip() for line in message[:_MAX_READ].splitlines() if line.strip()]
    telling = [line for line in lines if _TELLING.search(line) and not line.endswith(":")]
    if compiling and len(lines) > 1 and telling:
        lines = telling[:1]
    return f"{type(error).__name__}: {' '.join(lines)}" if lines else type(error).__name__
