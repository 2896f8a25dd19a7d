"""`run.py check`: what it reports of good submissions, and one bad submission for each error."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from judge.check_report import CheckVerdict, check_from_json, check_to_json
from judge.cli import main
from judge.verdict import Rules
from judge.views.check_csv import check_csv
from tests.checking import HEAD, SMOKE, checked, forward, kernel, smoke_cases

pytestmark = pytest.mark.skipif(
    shutil.which("nvcc") is None, reason="needs nvcc, which TileLang compiles with"
)
ROOT = Path(__file__).resolve().parents[1]
V01 = ROOT / "submissions" / "v01_gemm"


def submission(folder: Path, *parts: str) -> Path:
    """A submission of these pieces of source."""
    folder.mkdir()
    (folder / "tilelang_fwd.py").write_text(HEAD + "\n".join(parts))
    return folder


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("check_cache")


@pytest.fixture(autouse=True)
def cache(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One compile cache for all tests here, which the machine's own cannot shorten."""
    monkeypatch.setenv("GDN_JUDGE_CACHE", str(shared_cache))
    return shared_cache


def ptxas_figures(source: Path) -> dict[str, int]:
    """Registers and spills that ptxas states of a CUDA file, compiled here as TileLang does."""
    import tilelang

    sources = Path(tilelang.__file__).parent
    done = subprocess.run(
        [
            *("nvcc", "-arch=sm_90a", "-std=c++20", "-O3", "-cubin", "-Xptxas", "-v"),
            *(f"-I{sources / 'src'}", f"-I{sources / '3rdparty' / 'cutlass' / 'include'}"),
            *("-o", os.devnull, str(source)),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    said = re.search(
        r"(\d+) bytes spill stores, (\d+) bytes spill loads.*?Used (\d+) registers",
        done.stderr,
        re.DOTALL,
    )
    names = ("spill_stores", "spill_loads", "registers")
    return dict(zip(names, map(int, said.groups()), strict=True))


def test_v01_gemm_has_the_figures_that_ptxas_states() -> None:
    cases = [case for case in smoke_cases() if case.initial_state is not None]
    report = checked(V01, cases)
    assert report.verdict == "ok"
    assert report.submission.rules is Rules.OK
    assert [case.verdict for case in report.cases] == [CheckVerdict.OK] * len(cases)
    (found,) = report.kernels
    (source,) = Path(report.cache).rglob("device_kernel.cu")
    for name, figure in ptxas_figures(source).items():
        assert getattr(found, name) == figure
    assert found.threads == 128
    # Four blocks of 32 columns for each of 4 heads of one batch; of 2 heads where T is 1.
    assert [use.grid for use in found.grids] == [[4, 4, 1], [4, 2, 1]]
    # The tiles that its source allocates: Q, K 64 x 128, V, W, V_new twice 64 x 32, A and P
    # 64 x 64, S 128 x 32, all bfloat16; g and beta 64 float32.
    tiles = 2 * (2 * 64 * 128 + 4 * 64 * 32 + 2 * 64 * 64 + 128 * 32) + 2 * 64 * 4
    assert tiles <= found.static_shared + found.dynamic_shared <= tiles + 2048
    assert found.occupancy.shared == 3  # 3 x 74 KB fit into 228 KB, four do not
    assert "wgmma" in found.units
    assert "tma" not in found.units  # its copies say disable_tma
    assert report.cases[0].outputs[0].dtype == "bfloat16"
    assert not found.cached

    again = checked(V01, cases)
    assert again.kernels[0].cached
    assert again.kernels[0].registers == found.registers
    assert check_from_json(check_to_json(again)) == again
    header, row = check_csv(again).splitlines()
    assert dict(zip(header.split(","), row.split(","), strict=False))["kernel"] == "kernel_kernel"


def test_figures_of_a_kernel_that_was_compiled_without_a_check(tmp_path: Path) -> None:
    path = submission(tmp_path / "s", kernel(), forward())
    first = checked(path)
    figures = list(Path(first.cache).glob("figures/*.json"))
    assert len(figures) == 1
    figures[0].unlink()  # as after a grading on a GPU
    again = checked(path)
    assert again.kernels[0].registers == first.kernels[0].registers > 0
    assert again.verdict == "ok"


def test_tilelang_syntax_error(tmp_path: Path) -> None:
    report = checked(submission(tmp_path / "s", kernel("T.no_such_call(v)"), forward()))
    assert report.verdict == "failed"
    assert report.cases[0].verdict is CheckVerdict.COMPILE_ERROR
    assert "no_such_call" in report.cases[0].detail


CONFLICT = """
x = T.alloc_shared((64, 64), "bfloat16")
first = T.alloc_fragment((64, 64), "float32")
second = T.alloc_fragment((64, 64), "float32")
T.gemm(x, x, first, clear_accum=True)
T.gemm(x, x, second, clear_accum=True)
for i, j in T.Parallel(64, 64):
    second[j, i] = first[i, j]
for i, j in T.Parallel(64, 64):
    out[b, t, h, j] = second[i, j]
"""


def test_layout_that_cannot_be_inferred(tmp_path: Path) -> None:
    # Both fragments have the layout of a product's accumulator, and one is the other's transpose.
    report = checked(submission(tmp_path / "s", kernel(CONFLICT), forward()))
    assert report.verdict == "failed"
    assert report.cases[0].verdict is CheckVerdict.COMPILE_ERROR
    assert "ayout" in report.cases[0].detail
    assert report.kernels[0].verdict is CheckVerdict.COMPILE_ERROR


LARGE = """
tile = T.alloc_shared((480, HEAD_DIM), "float32")
for row in T.serial(480):
    for i in T.Parallel(HEAD_DIM):
        tile[row, i] = v[b, t, h, i]
for row in T.serial(480):
    for i in T.Parallel(HEAD_DIM):
        out[b, t, h, i] = tile[479 - row, HEAD_DIM - 1 - i]
"""


def test_240_kb_of_shared_memory_cannot_launch(tmp_path: Path) -> None:
    report = checked(submission(tmp_path / "s", kernel(LARGE), forward()), profile="h200")
    assert report.verdict == "failed"
    assert report.cases[0].verdict is CheckVerdict.CANNOT_LAUNCH
    found = report.kernels[0]
    assert found.static_shared + found.dynamic_shared >= 480 * 128 * 4 == 240 * 1024
    assert found.occupancy.ctas == found.occupancy.shared == 0
    assert "245760 bytes of shared memory a block (240.0 KB), h200 has 232448" in found.detail


SPILLING = """
many = T.alloc_fragment((1024, HEAD_DIM), "float32")
for i, j in T.Parallel(1024, HEAD_DIM):
    many[i, j] = i * j
for row in T.serial(tokens):
    for i, j in T.Parallel(1024, HEAD_DIM):
        many[i, j] = many[i, j] * many[i, j] + v[b, row, h, (i + j) % HEAD_DIM]
for i, j in T.Parallel(1024, HEAD_DIM):
    out[b, t, (h + i) % heads, j] = many[i, j]
"""


def test_spilling_registers_are_warned_of(tmp_path: Path) -> None:
    # 1024 threads leave 64 registers each, and each holds 128 values from turn to turn.
    report = checked(submission(tmp_path / "s", kernel(SPILLING, threads=1024), forward()))
    assert report.verdict == "warnings"
    (found,) = report.kernels
    assert found.registers <= 64
    assert found.spill_stores > 0
    assert found.warnings[0].startswith(f"spills registers: {found.spill_stores} bytes of stores")
    assert found.occupancy.threads == 2
    assert report.cases[0].verdict is CheckVerdict.OK


FORBIDDEN = {
    "import flash_qla": "tilelang_fwd.py:7 imports flash_qla",
    "import importlib\nfla = importlib.import_module('fla.ops')": (
        "tilelang_fwd.py:8 imports fla.ops"
    ),
    "def late():\n    from flashinfer import gdn": "tilelang_fwd.py:8 imports flashinfer",
}


@pytest.mark.parametrize("line", FORBIDDEN)
def test_forbidden_import(tmp_path: Path, line: str) -> None:
    report = checked(submission(tmp_path / "s", line, forward("")))
    assert report.verdict == "failed"
    assert report.submission.rules is Rules.FORBIDDEN_IMPORT
    assert report.submission.rules_detail == FORBIDDEN[line]


def test_missing_function(tmp_path: Path) -> None:
    report = checked(submission(tmp_path / "s", "def gdn_prefill(q): ..."))
    assert report.verdict == "failed"
    assert report.cases[0].verdict is CheckVerdict.IMPORT_ERROR
    assert report.cases[0].detail == "tilelang_fwd.py exports no function gdn_prefill_forward"


def test_wrong_signature(tmp_path: Path) -> None:
    body = "def gdn_prefill_forward(q, k, v, g_cumsum, beta): ..."
    report = checked(submission(tmp_path / "s", body))
    assert report.verdict == "failed"
    assert report.cases[0].verdict is CheckVerdict.SIGNATURE_ERROR
    assert "gdn_prefill_forward(q, k, v, g_cumsum, beta): too many" in report.cases[0].detail
    assert "A, initial_state=None)" in report.cases[0].detail


def test_wrong_dtype_and_a_call_without_tilelang(tmp_path: Path) -> None:
    line = "output = output.float()"
    report = checked(submission(tmp_path / "s", forward(line)))
    assert report.verdict == "failed"
    assert report.cases[0].verdict is CheckVerdict.BAD_RESULT
    assert report.cases[0].detail == "output has dtype float32, expected bfloat16"
    assert report.submission.rules is Rules.NO_TILELANG
    assert report.submission.rules_detail == "a call launched no TileLang kernel"


def test_argument_that_the_kernel_would_refuse(tmp_path: Path) -> None:
    report = checked(submission(tmp_path / "s", kernel(), forward("build()(v.float(), output)")))
    assert report.cases[0].verdict is CheckVerdict.CRASH
    assert report.cases[0].detail.endswith("argument v has dtype float32, expected bfloat16")


def test_child_that_dies_leaves_a_verdict(tmp_path: Path) -> None:
    body = forward("import ctypes; v.shape[1] == 1 and ctypes.string_at(0); build()(v, output)")
    report = checked(submission(tmp_path / "s", kernel(), body), smoke_cases()[1:3])
    assert [case.verdict for case in report.cases] == [CheckVerdict.OK, CheckVerdict.CRASH]
    assert "SIGSEGV" in report.cases[1].detail
    assert report.kernels[0].verdict is CheckVerdict.OK


PUBLIC_STYLE = """
import triton
import triton.language as tl

SMS = torch.cuda.get_device_properties().multi_processor_count
assert torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)


@triton.jit
def scale_kernel(x, n, BLOCK: tl.constexpr):
    tl.store(x, tl.load(x) * 2)


@tilelang.jit(out_idx=[-1])
def copy_kernel(heads, wide):
    batch, tokens = T.dynamic("batch"), T.dynamic("tokens")
    shape = (batch, tokens, heads, HEAD_DIM)

    @T.prim_func
    def copied(v: T.Tensor(shape, "bfloat16"), out: T.Tensor(shape, "bfloat16")):
        with T.Kernel(T.ceildiv(tokens, 64), heads, batch, threads=wide) as (t, h, b):
            tile = T.alloc_shared((64, HEAD_DIM), "bfloat16")
            T.copy(v[b, t * 64, h, 0], tile)
            T.copy(tile, out[b, t * 64, h, 0])

    return copied


@tilelang.jit(out_idx=-1)
def state_kernel(heads):
    batch, tokens, qk_heads = T.dynamic("batch"), T.dynamic("tokens"), T.dynamic("qk_heads")

    @T.prim_func
    def specialised(
        k: T.Tensor((batch, tokens, qk_heads, HEAD_DIM), "bfloat16"),
        v: T.Tensor((batch, tokens, heads, HEAD_DIM), "bfloat16"),
        state: T.Tensor((batch, heads, HEAD_DIM, HEAD_DIM), "float32"),
    ):
        with T.Kernel(batch * heads, threads=256) as bh:
            k_tile = T.alloc_shared((2, 64, HEAD_DIM), "bfloat16")
            v_tile = T.alloc_shared((2, 64, HEAD_DIM), "bfloat16")
            s = T.alloc_fragment((HEAD_DIM, HEAD_DIM), "float32")
            full = T.alloc_barrier([128] * 2)
            empty = T.alloc_barrier([128] * 2)
            tx = T.get_thread_binding()
            b, h = bh // heads, bh % heads
            if tx < 128:
                T.clear(s)
                for c in T.serial(T.ceildiv(tokens, 64)):
                    T.barrier_wait(full[c % 2], (c // 2) % 2)
                    T.gemm(k_tile[c % 2, :, :], v_tile[c % 2, :, :], s, transpose_A=True)
                    T.barrier_arrive(empty[c % 2])
                T.copy(s, state[b, h, 0, 0])
            else:
                for c in T.serial(T.ceildiv(tokens, 64)):
                    T.barrier_wait(empty[c % 2], (c // 2 + 1) % 2)
                    T.copy(k[b, c * 64, h // (heads // qk_heads), 0], k_tile[c % 2, :, :])
                    T.copy(v[b, c * 64, h, 0], v_tile[c % 2, :, :])
                    T.barrier_arrive(full[c % 2])

    return specialised


graphs = {}


def run(k, v):
    heads = v.shape[2]
    scale_kernel[(heads,)](v, v.numel(), BLOCK=128)
    return copy_kernel(heads, 128 if SMS < 20 else 256)(v), state_kernel(heads)(k, v)


def gdn_prefill_forward(q, k, v, g_cumsum, beta, A, initial_state=None):
    key = (q.data_ptr(), k.data_ptr(), v.data_ptr())
    if key not in graphs:
        graphs[key] = None
        return run(k, v)
    if graphs[key] is None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(stream), torch.cuda.graph(graph):
            result = run(k, v)
        graphs[key] = graph, result
    graph, result = graphs[key]
    graph.replay()
    return result
"""


def test_kernels_in_the_style_of_public_ones(tmp_path: Path) -> None:
    small = smoke_cases()[0]  # B 1, T 193, Hq 2, Hv 4
    cases = [small, replace(small, name="larger", batch=2, tokens=257)]
    report = checked(submission(tmp_path / "s", PUBLIC_STYLE), cases)
    assert [(case.verdict, case.detail) for case in report.cases] == [(CheckVerdict.OK, "")] * 2
    assert report.verdict == "ok"
    assert report.cases[0].unchecked == ["Triton kernel scale_kernel"]
    copies = [kernel for kernel in report.kernels if kernel.symbol.startswith("copied")]
    states = [kernel for kernel in report.kernels if kernel.symbol.startswith("specialised")]
    # Both cases have the same heads, which are compiled in: one kernel of each kind serves both.
    assert [[use.grid for use in kernel.grids] for kernel in copies] == [[[4, 4, 1], [5, 4, 2]]]
    assert [[use.grid for use in kernel.grids] for kernel in states] == [[[4, 1, 1], [8, 1, 1]]]
    assert all(kernel.threads == 128 for kernel in copies)  # the profile has 14 SMs
    assert all({"wgmma", "mbarrier"} <= set(kernel.units) for kernel in states)
    assert [form.shape for form in report.cases[1].outputs] == [[2, 257, 4, 128], [2, 4, 128, 128]]


def test_command_line(tmp_path: Path) -> None:
    path = submission(tmp_path / "s", forward(""))
    common = ["check", str(path), "--cases", str(SMOKE), "--case", "smoke_one_token"]
    done = CliRunner().invoke(main, [*common, "--output-format", "json"])
    assert done.exit_code == 1
    assert check_from_json(done.stdout).submission.rules is Rules.NO_TILELANG
    table = CliRunner().invoke(main, common)
    assert table.exit_code == 1
    assert "a call launched no TileLang kernel" in table.stdout
    (verdict,) = (line for line in table.stdout.splitlines() if line.startswith("Verdict"))
    assert " ".join(verdict.split()) == "Verdict failed: no TileLang kernel 1 of 1 cases fine"
    wrong = CliRunner().invoke(main, ["check", str(tmp_path / "none")])
    assert wrong.exit_code == 2
    assert "no such file or folder" in wrong.stderr
