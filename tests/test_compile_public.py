"""Compiling public implementations ahead: what is found, where it lands, what is told."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from judge.caches import TARGET_VARIABLES, submission_cache
from judge.check_session import CheckLimits, CheckSession
from judge.child.arguments import InputForm
from judge.child.known_integers import KnownIntegers
from judge.child.log import ChildLog
from judge.child.process import ChildOptions, default_memory_limit
from judge.environment import installed_version
from judge.implementations import CORE, FULL, Implementation, public_implementations
from judge.sandbox.kinds import OFF
from judge.submission import submission_from
from judge.suites import load_suite
from scripts.compile_public import DEVICE, compile_all, main
from tests.checking import SMOKE, smoke_cases

needs_nvcc = pytest.mark.skipif(
    shutil.which("nvcc") is None, reason="needs nvcc, which TileLang compiles with"
)
FLASH_QLA = installed_version("flash-qla")

LIBRARY = """
import tilelang
import tilelang.language as T
import torch

SMS = torch.cuda.get_device_properties().multi_processor_count


@tilelang.jit()
def build(heads, threads):
    batch, tokens, pieces = T.dynamic("batch"), T.dynamic("tokens"), T.dynamic("pieces")
    shape = (batch, tokens, heads, 128)

    @T.prim_func
    def copied(
        v: T.Tensor(shape, "bfloat16"),
        bounds: T.Tensor([pieces + 1], "int32"),
        out: T.Tensor(shape, "bfloat16"),
    ):
        with T.Kernel(pieces, heads, threads=threads) as (p, h):
            for t in T.serial(bounds[p], bounds[p + 1]):
                for i in T.Parallel(128):
                    out[0, t, h, i] = v[0, t, h, i]

    return copied


def copy(v, pieces, threads=128 if SMS > 100 else 256):
    whole = torch.tensor([0, v.shape[1]], dtype=torch.int32, device=v.device)
    first, last = whole.tolist()
    bounds = torch.zeros(pieces + 1, dtype=torch.int32, device=v.device)
    bounds[1:] = torch.arange(1, pieces + 1, device=v.device) * last // pieces
    assert bounds[-1].item() == v.shape[1]
    out = torch.empty_like(v)
    build(v.shape[2], threads)(v, bounds, out)
    return out


def result(v, state):
    if state is None:
        state = torch.zeros(v.shape[0], v.shape[2], 128, 128, device=v.device)
    return copy(v, 2), state
"""
WHOLE = """
def gdn_prefill_forward(q, k, v, raw_g, beta, initial_state=None):
    return result(v, initial_state)
"""
PREPARED = """
def prepare_arguments(k, raw_g, beta):
    copy(k, 1, 32)
    return raw_g, torch.empty(*raw_g.shape, 64, dtype=k.dtype, device=k.device)


def gdn_prefill_forward(q, k, v, g_cumsum, beta, A, initial_state=None):
    assert A.shape[:3] == v.shape[:3]
    return result(v, initial_state)
"""
READS_WHAT_A_KERNEL_WROTE = """
def gdn_prefill_forward(q, k, v, raw_g, beta, initial_state=None):
    copy(v, 1)
    torch.empty(1, dtype=torch.int32, device=v.device).item()
"""


def implementation(scope: str, source: str) -> Implementation:
    file = f"library_{scope}.py"
    submission = submission_from(f"library-{scope}", file, file, {file: source.encode()})
    inputs = InputForm.OWN if scope == CORE else InputForm.RAW
    return Implementation("library", scope, "1.0", submission, inputs)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GDN_JUDGE_CACHE", str(tmp_path))
    for name in TARGET_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def compiled_files(one: Implementation) -> set[str]:
    folder = submission_cache(one.submission.digest)
    return {file.parent.name for file in folder.rglob("*.so")}


@needs_nvcc
def test_kernels_lie_where_children_look_and_scopes_share_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    full, core = implementation(FULL, LIBRARY + WHOLE), implementation(CORE, LIBRARY + PREPARED)
    case = replace(smoke_cases()[0], batch=1, qk_heads=1, v_heads=2)
    assert compile_all([full, core], [case], [132, 14], 2)
    said = capsys.readouterr().out
    # One kernel for each number of SMs; core has those too, and prepares with one of its own.
    assert len(re.findall(r"copied \(.*\): [\d.]+ s", said)) == 3
    assert len(re.findall(r"copied \(.*\): there already", said)) == 3
    assert said.splitlines()[-1].startswith("3 kernels, 3 of them compiled now, 0 problems")
    assert len(compiled_files(full)) == 2
    assert len(compiled_files(core)) == 3
    assert compiled_files(full) < compiled_files(core)

    assert compile_all([core], [case], [14], 1)
    assert "2 kernels, 0 of them compiled now" in capsys.readouterr().out


@needs_nvcc
def test_what_depends_on_a_kernel_is_a_problem_and_what_came_before_is_compiled(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = implementation(FULL, LIBRARY + READS_WHAT_A_KERNEL_WROTE)
    case = replace(smoke_cases()[0], batch=1)
    assert not compile_all([one], [case], [132], 1)
    said = capsys.readouterr().out
    assert f"{case.name}: the call depends on computed data" in said
    assert "1 kernels, 1 of them compiled now, 1 problems" in said
    assert len(compiled_files(one)) == 1


@pytest.mark.skipif(FLASH_QLA is not None, reason="flash-qla is installed")
def test_without_flash_qla_there_is_nothing_to_compile() -> None:
    done = CliRunner().invoke(main, [])
    assert done.exit_code == 2
    assert "flash-qla is not installed" in done.output


@pytest.mark.skipif(FLASH_QLA is None, reason="needs flash-qla")
@pytest.mark.parametrize("scope", [FULL, CORE])
def test_long_sequences_are_cut_and_short_ones_are_not(tmp_path: Path, scope: str) -> None:
    (one,) = [
        found
        for found in public_implementations()
        if (found.name, found.scope) == ("flash_qla", scope)
    ]
    options = ChildOptions(
        device="cuda:0",
        visible_devices="",
        threads=1,
        memory_limit=default_memory_limit(),
        profile=DEVICE,
        sandbox=OFF,
        inputs=one.inputs,
    )
    log = ChildLog(tmp_path / "log")
    session = CheckSession(one.submission, options, CheckLimits(), log)
    cases = {case.name: case for case in load_suite(SMOKE.with_name("public.yaml")).cases}
    always = {"chunk_local_cumsum", "kkt_solve", "fused_chunk_gdr_fwd"}
    cut = {"get_warmup_chunks", "prepare_h", "correct_h0"}
    try:
        for name, wanted in (("long_low_gva", always | cut), ("batch_split_gva", always)):
            checked = session.check(cases[name])
            assert not checked.problem
            found = {launch.name for launch in checked.launches}
            assert found == {f"tilelang_{kernel}_kernel" for kernel in wanted}
    finally:
        session.close()
        log.close()


def test_integers_are_known_until_something_unknown_is_written() -> None:
    with FakeTensorMode(allow_non_fake_inputs=True), KnownIntegers():
        lengths = torch.tensor([3, 1, 2])
        bounds = torch.zeros(4, dtype=torch.int32)
        bounds[1:] = lengths.cumsum(0)
        assert bounds.tolist() == [0, 3, 4, 6]
        assert bounds[-1].item() == 6
        assert bool((bounds[1:] > 0).all())
        assert [int(one) for one in torch.stack([bounds, bounds * 2])[1]] == [0, 6, 8, 12]
        written = bounds[2:]
        written.copy_(torch.empty(2, dtype=torch.int32))
        for unknown in (bounds[0], written[0], bounds + 1, torch.randint(9, (1,)), torch.ones(1)):
            with pytest.raises(DataDependentOutputException):
                unknown.sum().item()
