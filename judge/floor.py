"""The least time that a call of a case can take, from what it must move and multiply."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import torch

from judge.case import CHUNK, HEAD_DIM, Case

_COPY_BYTES = 1 << 30
_MATRIX = 8192
_RUNS = 8
MARGIN = 0.75
"""Share of the floor that is let pass: ceilings are measured, and no honest kernel may cross it."""


@dataclass(frozen=True)
class Ceilings:
    """What a device was measured to reach, once.

    bytes_per_s: device copy, read and written bytes added. flops_per_s: bfloat16 matrix product.
    cache_bytes: L2 cache, in which data may already lie.
    """

    bytes_per_s: float
    flops_per_s: float
    cache_bytes: int


def floor_ms(case: Case, ceilings: Ceilings) -> float:
    """Milliseconds below which no claimed time of a case is believed.

    Bytes: every input read once and every result written once, less what the cache can hold; half
    of A, whose upper triangle is zero. FLOPs: the products of a chunk (docs/lab.md), with half of
    each product that has a triangular operand: K S, Q S, Kᵀ V_new, and halves of A W', Q Kᵀ and
    P V_new.
    """
    tokens = case.batch * case.tokens
    states = case.batch * case.v_heads * HEAD_DIM * HEAD_DIM * 4
    moved = tokens * case.qk_heads * HEAD_DIM * 2 * 2
    moved += tokens * case.v_heads * (HEAD_DIM * 2 * 2 + CHUNK + 4 + 4)
    moved += states * (1 if case.initial_state is None else 2)
    full = 3 * 2 * HEAD_DIM * HEAD_DIM
    triangular = 3 * CHUNK * HEAD_DIM
    flops = tokens * case.v_heads * (full + triangular)
    seconds = max(
        (moved - ceilings.cache_bytes) / ceilings.bytes_per_s, flops / ceilings.flops_per_s
    )
    return MARGIN * seconds * 1e3


def known_ceilings(folder: Path, device: torch.device) -> Ceilings:
    """The ceilings of a CUDA device, from a file in `folder` or measured now and kept there.

    To be asked for while nothing runs on the device.
    """
    properties = torch.cuda.get_device_properties(device)
    file = folder / f"{properties.uuid}-{properties.multi_processor_count}.json"
    try:
        return msgspec.json.decode(file.read_bytes(), type=Ceilings)
    except (OSError, msgspec.MsgspecError):
        ceilings = measure_ceilings(device)
    folder.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(f".{os.getpid()}")
    partial.write_bytes(msgspec.json.encode(ceilings))
    partial.replace(file)
    return ceilings


def measure_ceilings(device: torch.device) -> Ceilings:
    """Time copies of 1 GiB and products of 8192 x 8192 bfloat16 matrices; takes 0.2 s."""
    source = torch.zeros(_COPY_BYTES, dtype=torch.uint8, device=device)
    copy_s = _best_s(torch.Tensor.copy_, torch.empty_like(source), source)
    del source
    matrix = torch.randn(_MATRIX, _MATRIX, dtype=torch.bfloat16, device=device)
    product_s = _best_s(torch.mm, matrix, matrix)
    del matrix
    torch.cuda.empty_cache()
    cache_bytes = torch.cuda.get_device_properties(device).L2_cache_size
    return Ceilings(2 * _COPY_BYTES / copy_s, 2 * _MATRIX**3 / product_s, cache_bytes)


def _best_s(function: Callable[..., object], *arguments: torch.Tensor) -> float:
    best = float("inf")
    for _ in range(_RUNS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        function(*arguments)
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best
