"""The TileLang kernels compile for Hopper, on a machine without a GPU too, and use it well."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    shutil.which("nvcc") is None, reason="needs nvcc, which TileLang compiles with"
)

ROOT = Path(__file__).parents[1]
TARGET = '{"kind": "cuda", "arch": "sm_90a"}'

COMPILE_ONE = """
import ast, importlib.util, os, sys
path, factory, *arguments = sys.argv[1:]
sys.path.insert(0, os.path.dirname(path))
spec = importlib.util.spec_from_file_location("kernels", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
getattr(module, factory)(*[ast.literal_eval(argument) for argument in arguments])
"""


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel to look at: its CUDA name and how many T.gemm it contains.

    since: the oldest TileLang that compiles it.
    """

    path: str
    factory: str
    arguments: tuple[str, ...]
    symbol: str
    gemms: int
    since: tuple[int, ...] = (0, 1, 9)

    def __str__(self) -> str:
        return f"{self.path}:{self.factory}({', '.join(self.arguments)})"


def rung(folder: str, *arguments: str, gemms: int = 6) -> Kernel:
    """The kernel of a submission, compiled for one choice of arguments."""
    path = f"submissions/{folder}/tilelang_fwd.py"
    return Kernel(path, "compile_kernel", arguments, "kernel_kernel", gemms)


SCAN = "submissions/experiments/parallel_scan"
SPILLING = rung("experiments/v21_64_registers", "True")
KERNELS = [
    Kernel("reference/simple_tilelang.py", "compile_kernel", ("True",), "simple_forward_kernel", 7),
    Kernel(
        "reference/preprocess_tilelang.py",
        "gated_kkt_inverse_kernel",
        (),
        "gated_kkt_inverse_kernel",
        1,
    ),
    Kernel("reference/preprocess_tilelang.py", "chunk_cumsum_kernel", (), "chunk_cumsum_kernel", 0),
    rung("v01_gemm", "True"),
    rung("v02_tma", "True"),
    rung("v02b_tma_dv32", "True"),
    rung("v05_adaptive_dv", "False", "32"),
    rung("v06_warp_specialized", "True", "32"),
    rung("v07_gva_dv", "True", "64"),
    rung("v14_cuda_graph", "True", "128"),
    # Three products of a chunk without output, five of one with, and P's one. S^T is two operands,
    # which makes U' and S^T Q^T two each, and P V_new stands there for each of P's two tiles.
    *(
        replace(rung("champion", "True", columns, gemms=13), since=(0, 1, 15))
        for columns in ("64", "128")
    ),
    rung("experiments/v03_qk_double_buffer", "True"),
    rung("experiments/v04_no_decay_A", "True", "128"),
    rung("experiments/v09_missing_barriers", "True", "128"),
    rung("experiments/v09b_direct_store", "True", "128"),
    rung("experiments/v11_merged_gates", "True", "128", "8"),
    rung("experiments/v15_three_stage", "True", "128"),
    rung("experiments/v20_two_ctas", "True"),
    SPILLING,
    rung("experiments/w8a8_int8", "True"),
    rung("experiments/parallel_scan"),
    Kernel(f"{SCAN}/segment_summaries.py", "compile_summaries", (), "kernel_kernel", 3),
    Kernel(f"{SCAN}/start_states.py", "compile_start_states", ("True",), "kernel_kernel", 3),
]


def compile_to_ptx(kernel: Kernel, folder: Path) -> str:
    """The PTX that TileLang's own nvcc call leaves behind, compiled in a process of its own."""
    environment = os.environ | {
        # TileLang 0.1.9 reads the first name, 0.1.15 the second.
        "TILELANG_TARGET": TARGET,
        "TILELANG_DEFAULT_TARGET": TARGET,
        "TILELANG_CACHE_DIR": str(folder / "cache"),
        "NVCC_APPEND_FLAGS": f"--keep --keep-dir={folder}",
    }
    done = subprocess.run(
        [sys.executable, "-c", COMPILE_ONE, ROOT / kernel.path, kernel.factory, *kernel.arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    (ptx,) = folder.glob("*.ptx")
    return ptx.read_text()


def resource_usage(ptx: str, folder: Path) -> str:
    """What ptxas reports of registers, stack and spills."""
    source = folder / "kernel.ptx"
    source.write_text(ptx)
    done = subprocess.run(
        [
            "nvcc",
            "-arch=sm_90a",
            "-cubin",
            "-Xptxas",
            "-v",
            "-o",
            folder / "kernel.cubin",
            source,
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout + done.stderr


def skip_under_older_tilelang(kernel: Kernel) -> None:
    version = metadata.version("tilelang")
    numbers = tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0]))
    if numbers < kernel.since:
        oldest = ".".join(map(str, kernel.since))
        pytest.skip(f"needs TileLang {oldest}; this is {version}")


NO_SPILLS = r"\b0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"


# One test a kernel, so that two workers share the compiling.
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_products_run_on_the_tensor_cores_and_nothing_spills(
    kernel: Kernel, tmp_path: Path
) -> None:
    skip_under_older_tilelang(kernel)
    ptx = compile_to_ptx(kernel, tmp_path)
    assert f".entry {kernel.symbol}(" in ptx
    assert ptx.count("wgmma.commit_group") == kernel.gemms
    assert ("wgmma.mma_async" in ptx) == (kernel.gemms > 0)
    # TF32 has ten bits of mantissa: no float32 product may be taken through it.
    assert "tf32" not in ptx
    usage = resource_usage(ptx, tmp_path)
    if kernel is SPILLING:
        assert "Used 64 registers" in usage
        assert re.search(r"[1-9]\d* bytes spill stores", usage)
    else:
        assert re.search(NO_SPILLS, usage)
        assert "serialized" not in usage, "ptxas had to serialise WGMMA"


@pytest.mark.parametrize("columns", ["64", "128"])
def test_the_champion_reads_v_of_every_stage(columns: str, tmp_path: Path) -> None:
    """TileLang 0.1.15 drops a stage's offset from a T.copy by ldmatrix, so each has its own tile.

    Two loops, three stages, four loads of 16 rows each.
    """
    champion = next(kernel for kernel in KERNELS if "champion" in kernel.path)
    skip_under_older_tilelang(champion)
    ptx = compile_to_ptx(replace(champion, arguments=("False", columns)), tmp_path)
    addresses = re.findall(r"ldmatrix[.\w]*trans[.\w]* +\{[^}]*\}, *\[([^]]*)\]", ptx)
    assert len(addresses) == 24
    assert len(set(addresses)) == 24
