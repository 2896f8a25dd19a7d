"""What scripts share that call submissions in their own process, without a child."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import torch

from judge.caches import compile_judge_kernels, compiler_variables, submission_cache, write_files
from judge.case import CHUNK, HEAD_DIM
from judge.environment import capture
from judge.record import Environment
from judge.submission import ENTRY, find_submission
from reference.preprocess import Preprocess, preprocess_for

Result = tuple[torch.Tensor, torch.Tensor]


@dataclass
class Run:
    """When and where a script measured, and what: digests of the submissions by name."""

    created: str
    environment: Environment
    digests: dict[str, str]


def run_now(device: torch.device, paths: Iterable[Path]) -> Run:
    """A run that begins now, of the submissions at these paths."""
    found = [find_submission(path) for path in paths]
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return Run(created, capture(device), {one.name: one.digest for one in found})


def ready_to_call(digests: Iterable[str], folder: Path, device: torch.device) -> Preprocess:
    """Let TileLang work in `folder`, on copies of what is compiled for these submissions.

    Returns the judge's preprocessing, its kernels loaded. Raises CompileError.
    """
    os.environ.update(compiler_variables(folder))
    write_files(compile_judge_kernels(), folder / "tilelang")
    for digest in digests:
        kept = submission_cache(digest)
        files = [path for path in kept.rglob("*") if path.is_file()]
        write_files({str(path.relative_to(kept)): path.read_bytes() for path in files}, folder)
    preprocess = preprocess_for(device)
    gates = torch.zeros((1, CHUNK, 1), device=device)
    preprocess(torch.zeros((1, CHUNK, 1, HEAD_DIM), device=device).bfloat16(), gates, gates)
    return preprocess


def module_of(path: Path) -> ModuleType:
    """A submission's file, or that of its folder, as a module of its own."""
    file = path / ENTRY if path.is_dir() else path
    spec = importlib.util.spec_from_file_location(f"{file.parent.name}_{file.stem}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def function_of(path: Path) -> Callable[..., Result]:
    """`gdn_prefill_forward` of a submission's file or folder."""
    return module_of(path).gdn_prefill_forward
