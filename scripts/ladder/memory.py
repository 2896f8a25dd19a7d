"""The shared memory of one thread block of v14_cuda_graph, buffer by buffer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from judge.check_report import CheckReport, KernelReport, check_from_json
from scripts.ladder.versions import SUBMITTED

KB = 1024
BFLOAT16, FLOAT32, BARRIER = 2, 4, 8
STAGES, CHUNK, HEAD_DIM = 2, 64, 128
INPUTS, HAND_OVER = "inputs, two stages", "hand-over between the groups"
STATIC_ALIGNMENT = 1024
"""TMA's tiles are aligned to it, so the static part in front of them is rounded up to it."""


@dataclass(frozen=True)
class Buffer:
    """One allocation. sizes: of each dimension; item: bytes of an element.

    static: whether the compiler places it before the launch's own, dynamic part.
    """

    name: str
    group: str
    sizes: tuple[int, ...]
    item: int
    static: bool = False

    @property
    def size(self) -> int:
        """Bytes."""
        size = self.item
        for one in self.sizes:
            size *= one
        return size


def buffers(dv_slice: int) -> list[Buffer]:
    """What v14's kernel allocates in shared memory for a dv slice, copied from it by hand.

    Its 11 barriers are two of each stage (loaded, released) and seven for the hand-over.
    """
    return [
        Buffer("q_tile", INPUTS, (STAGES, CHUNK, HEAD_DIM), BFLOAT16),
        Buffer("k_tile", INPUTS, (STAGES, CHUNK, HEAD_DIM), BFLOAT16),
        Buffer("v_tile", INPUTS, (STAGES, CHUNK, dv_slice), BFLOAT16),
        Buffer("a_tile", INPUTS, (STAGES, CHUNK, CHUNK), BFLOAT16),
        Buffer("g", INPUTS, (STAGES, CHUNK), FLOAT32, static=True),
        Buffer("beta_tile", INPUTS, (STAGES, CHUNK), FLOAT32, static=True),
        Buffer("state_operand", HAND_OVER, (HEAD_DIM, dv_slice), BFLOAT16),
        Buffer("v_new_decayed", HAND_OVER, (CHUNK, dv_slice), BFLOAT16),
        Buffer("v_new_operand", HAND_OVER, (CHUNK, dv_slice), BFLOAT16),
        Buffer("scores_operand", HAND_OVER, (CHUNK, CHUNK), BFLOAT16),
        Buffer("out_tile", HAND_OVER, (CHUNK, dv_slice), BFLOAT16),
        Buffer("barriers", HAND_OVER, (2 * STAGES + 7,), BARRIER, static=True),
    ]


def group_bytes(listed: list[Buffer], group: str) -> int:
    """Bytes of one group of buffers."""
    return sum(buffer.size for buffer in listed if buffer.group == group)


def dynamic_bytes(listed: list[Buffer]) -> int:
    """Bytes that the launch asks for."""
    return sum(buffer.size for buffer in listed if not buffer.static)


def static_bytes(listed: list[Buffer]) -> int:
    """Bytes of the static part, rounded up as ptxas does."""
    size = sum(buffer.size for buffer in listed if buffer.static)
    return -(-size // STATIC_ALIGNMENT) * STATIC_ALIGNMENT


def allocations(source: str, dv_slice: int) -> dict[str, tuple[int, ...]]:
    """The sizes of every T.alloc_shared in a submission's source, by name."""
    known = {"STAGES": STAGES, "CHUNK": CHUNK, "HEAD_DIM": HEAD_DIM, "dv_slice": dv_slice}
    found = re.findall(r"(\w+) = T\.alloc_shared\(\(([\w, ]+)\)", source)
    return {
        name: tuple(known[size.strip()] for size in sizes.split(",") if size.strip())
        for name, sizes in found
    }


def read_check(file: Path) -> CheckReport:
    """What `run.py check submissions/v14_cuda_graph --output-format json` printed.

    Raises ValueError where the file is no such report, or of another submission.
    """
    report = check_from_json(file.read_bytes())
    if report.submission.name != SUBMITTED:
        raise ValueError(f"{file}: is of {report.submission.name}, not of {SUBMITTED}")
    return report


def compiled(report: CheckReport, listed: list[Buffer]) -> list[KernelReport]:
    """The kernels of a report that have exactly these buffers."""
    return [
        kernel
        for kernel in report.kernels
        if kernel.dynamic_shared == dynamic_bytes(listed)
        and kernel.static_shared == static_bytes(listed)
    ]
