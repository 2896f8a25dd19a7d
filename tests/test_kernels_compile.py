"""The TileLang kernels compile for Hopper, on a machine without a GPU too, and use it well."""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    shutil.which("nvcc") is None, reason="needs nvcc, which TileLang compiles with"
)

ROOT = Path(__file__).parents[1]
TARGET = '{"kind": "cuda", "arch": "sm_90a"}'

COMPILE_ONE = """
import importlib.util, sys
path, factory, *arguments = sys.argv[1:]
spec = importlib.util.spec_from_file_location("kernels", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
getattr(module, factory)(*[argument == "True" for argument in arguments])
"""


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel to look at: its CUDA name and how many T.gemm it contains."""

    path: str
    factory: str
    arguments: tuple[str, ...]
    symbol: str
    gemms: int


KERNELS = [
    Kernel("reference/simple_tilelang.py", "compile_kernel", ("True",), "simple_forward_kernel", 7),
    Kernel("submissions/v01_gemm/tilelang_fwd.py", "compile_kernel", ("True",), "kernel_kernel", 6),
    Kernel(
        "reference/preprocess_tilelang.py",
        "gated_kkt_inverse_kernel",
        (),
        "gated_kkt_inverse_kernel",
        1,
    ),
    Kernel("reference/preprocess_tilelang.py", "chunk_cumsum_kernel", (), "chunk_cumsum_kernel", 0),
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


@pytest.fixture(scope="module")
def ptx(tmp_path_factory: pytest.TempPathFactory) -> dict[Kernel, str]:
    folders = [tmp_path_factory.mktemp("kernel") for _ in KERNELS]
    with ThreadPoolExecutor(max_workers=2) as pool:
        return dict(zip(KERNELS, pool.map(compile_to_ptx, KERNELS, folders), strict=True))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.symbol)
def test_products_run_on_the_tensor_cores(kernel: Kernel, ptx: dict[Kernel, str]) -> None:
    assert f".entry {kernel.symbol}(" in ptx[kernel]
    assert ptx[kernel].count("wgmma.commit_group") == kernel.gemms
    assert ("wgmma.mma_async" in ptx[kernel]) == (kernel.gemms > 0)
    # TF32 has ten bits of mantissa: no float32 product may be taken through it.
    assert "tf32" not in ptx[kernel]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.symbol)
def test_nothing_spills(kernel: Kernel, ptx: dict[Kernel, str], tmp_path: Path) -> None:
    source = tmp_path / "kernel.ptx"
    source.write_text(ptx[kernel])
    done = subprocess.run(
        [
            "nvcc",
            "-arch=sm_90a",
            "-cubin",
            "-Xptxas",
            "-v",
            "-o",
            tmp_path / "kernel.cubin",
            source,
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    usage = done.stdout + done.stderr
    assert re.search(r"\b0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", usage)
    assert "serialized" not in usage, "ptxas had to serialise WGMMA"
