"""What ptxas and the machine code say about a kernel: registers, spills, shared memory, units used.

ptxas's own words are asked for at the very compilation whose kernel will run, so the figures are
that kernel's. Nothing here needs a GPU.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_REMARK = re.compile(r"^ptxas (?:info|warning)\s*:\s*(\(C\d+\).*|.*Potential Performance Loss.*)$")

_SASS_LINE = re.compile(r"/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)")
_SASS_FUNCTION = re.compile(r"^\s*\.text\.([\w$]+):")
_SASS_UNITS = {
    "wgmma": ("HGMMA", "QGMMA", "IGMMA", "BGMMA"),
    "tma": ("UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF", "UBLKCP", "UBLKRED", "UBLKPF"),
    "mbarrier": ("SYNCS",),
}
_PTX_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_PTX_UNITS = {
    "wgmma": ("wgmma.mma_async",),
    "tma": ("cp.async.bulk", "cp.reduce.async.bulk"),
    "mbarrier": ("mbarrier.",),
}
_DISASSEMBLE_S = 120.0


@dataclass
class PtxasFigures:
    """What `ptxas -v` prints of one kernel: registers a thread, and bytes of the rest."""

    registers: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    static_shared: int = 0


def parse_ptxas(text: str) -> tuple[dict[str, PtxasFigures], list[str]]:
    """Figures by kernel, and ptxas's remarks about lost performance, from `ptxas -v` output."""
    kernels: dict[str, PtxasFigures] = {}
    remarks: list[str] = []
    entry = described = ""
    for line in text.splitlines():
        if match := _ENTRY.search(line):
            entry = described = match[1]
            kernels[entry] = PtxasFigures()
        elif match := _PROPERTIES.search(line):
            described = match[1]
        elif (match := _SPILLS.search(line)) and described in kernels:
            figures = kernels[described]
            figures.stack, figures.spill_stores, figures.spill_loads = map(int, match.groups())
        elif (match := _REGISTERS.search(line)) and entry in kernels:
            kernels[entry].registers = int(match[1])
            if shared := _SHARED.search(line):
                kernels[entry].static_shared = int(shared[1])
        elif (match := _REMARK.match(line.strip())) and match[1] not in remarks:
            remarks.append(match[1])
    return kernels, remarks


def find_disassembler() -> str | None:
    """Path of nvdisasm: on PATH, in the CUDA toolkit, or from the package nvidia-cuda-nvdisasm."""
    if found := shutil.which("nvdisasm"):
        return found
    folders = [Path("/usr/local/cuda/bin")]
    if nvcc := shutil.which("nvcc"):
        folders.append(Path(nvcc).resolve().parent)
    packages = Path(sysconfig.get_path("purelib")) / "nvidia"
    folders += [*sorted(packages.glob("cu*/bin")), packages / "cuda_nvdisasm" / "bin"]
    for folder in folders:
        if found := shutil.which("nvdisasm", path=str(folder)):
            return found
    return None


def units_in_sass(cubin: Path, disassembler: str) -> dict[str, list[str]]:
    """By kernel, which of wgmma, tma and mbarrier its machine code uses.

    Raises OSError or subprocess.SubprocessError where the tool does not do its work, as one that
    arrived without the permission to run.
    """
    done = subprocess.run(
        [disassembler, "-c", str(cubin)],
        capture_output=True,
        text=True,
        timeout=_DISASSEMBLE_S,
        check=True,
    )
    opcodes: dict[str, set[str]] = {}
    function = ""
    for line in done.stdout.splitlines():
        if match := _SASS_FUNCTION.match(line):
            function = match[1]
            opcodes[function] = set()
        elif function and (match := _SASS_LINE.search(line)):
            opcodes[function].add(match[1])
    return {
        name: [unit for unit, wanted in _SASS_UNITS.items() if used.intersection(wanted)]
        for name, used in opcodes.items()
    }


def units_in_ptx(ptx: str) -> dict[str, list[str]]:
    """By kernel, which of wgmma, tma and mbarrier its PTX uses."""
    entries = list(_PTX_ENTRY.finditer(ptx))
    ends = [entry.start() for entry in entries[1:]] + [len(ptx)]
    return {
        entry[1]: [
            unit
            for unit, wanted in _PTX_UNITS.items()
            if any(word in ptx[entry.start() : end] for word in wanted)
        ]
        for entry, end in zip(entries, ends, strict=True)
    }
