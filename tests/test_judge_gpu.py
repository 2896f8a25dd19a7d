"""Verdicts, rules and scores that need a CUDA device."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from judge.cli import main
from judge.record import CaseResult, from_json
from judge.session import Session
from judge.trial import Limits
from judge.verdict import Rules, Verdict
from tests.trial import ROOT, VERDICT_CASES, put_on_trial, verdict_cases, write_submission

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

V01 = ROOT / "submissions" / "v01_gemm"
KERNEL = """
import tilelang
import tilelang.language as T

@tilelang.jit
def build():
    @T.prim_func
    def kernel(a: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128) as block:
            for i in T.Parallel(128):
                a[i] = {value}
    return kernel
"""
GRAPH = """
graphs = {}

def gdn_prefill_forward(*arguments):
    key = tuple(None if tensor is None else tensor.data_ptr() for tensor in arguments)
    calls, graph, result = graphs.get(key, (0, None, None))
    if graph is None and calls == 1:
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            result = right(*arguments)
    if graph is None:
        result = right(*arguments)
    else:
        graph.replay()
    graphs[key] = (calls + 1, graph, result)
    return result
"""


def forward(line: str, helpers: str = "") -> str:
    """A submission that runs `line` on the first verdict case and is right on the second."""
    return (
        f"{helpers}\ndef gdn_prefill_forward(q, k, v, g_cumsum, beta, A, initial_state=None):\n"
        "    output, state = right(q, k, v, g_cumsum, beta, A, initial_state)\n"
        f"    if first_case(q):\n        {line}\n    return output, state\n"
    )


def judged(
    tmp_path: Path, path: Path, limits: Limits | None = None
) -> tuple[list[CaseResult], Session]:
    """Both verdict cases on the GPU."""
    results, session, _ = put_on_trial(path, tmp_path, limits=limits or Limits(), device="cuda:0")
    return results, session


def test_tilelang_kernel_passes_and_keeps_the_rules(tmp_path: Path) -> None:
    results, session = judged(tmp_path, V01)
    assert [result.verdict for result in results] == [Verdict.PASS, Verdict.PASS]
    assert session.rules == (Rules.OK, "")
    assert all(result.timing.median_ms > 0 for result in results)


def test_importing_tilelang_without_launching_it_breaks_the_rules(tmp_path: Path) -> None:
    path = write_submission(tmp_path / "s", forward("pass", "import tilelang"))
    results, session = judged(tmp_path, path)
    assert [result.verdict for result in results] == [Verdict.PASS, Verdict.PASS]
    assert session.rules == (Rules.NO_TILELANG, "a call launched no TileLang kernel")


def test_captured_graph_is_judged_and_passes(tmp_path: Path) -> None:
    results, _ = judged(tmp_path, write_submission(tmp_path / "s", GRAPH))
    assert [result.verdict for result in results] == [Verdict.PASS, Verdict.PASS]


def test_a_call_that_rests_where_contents_repeat_is_charged_for_it(tmp_path: Path) -> None:
    # with new contents it keeps the device busy for some tens of milliseconds first
    resting = """
seen = None

def gdn_prefill_forward(*arguments):
    global seen
    mark = arguments[0].reshape(-1)[:8].tolist()
    if mark != seen:
        torch.cuda._sleep(60_000_000)
    seen = mark
    return right(*arguments)
"""
    path = write_submission(tmp_path, resting)
    results, _, _ = put_on_trial(path, tmp_path, device="cuda:0", strict=True)
    assert [result.verdict for result in results] == [Verdict.PASS, Verdict.PASS]
    for result in results:
        witness = result.witness
        assert witness.charged_ms > 0
        cold_ms = 0.015 + 0.02 * witness.claimed_ms
        assert result.timing.median_ms == pytest.approx(witness.claimed_ms - cold_ms)


def test_graph_captured_for_one_case_may_serve_an_equal_one(tmp_path: Path) -> None:
    source = (V01 / "tilelang_fwd.py").read_text()
    path = write_submission(tmp_path / "s", GRAPH.replace("right(", "v01("))
    (path / "v01.py").write_text(source)
    entry = path / "tilelang_fwd.py"
    entry.write_text(
        "import tilelang\nfrom v01 import gdn_prefill_forward as v01\n" + entry.read_text()
    )
    case = verdict_cases()[0]
    results, session, _ = put_on_trial(path, tmp_path, [case, case], device="cuda:0")
    assert [result.verdict for result in results] == [Verdict.PASS, Verdict.PASS]
    assert session.rules == (Rules.OK, "")


def test_compile_error(tmp_path: Path) -> None:
    helpers = KERNEL.format(value="a[i] + undefined_name")
    path = write_submission(tmp_path / "s", forward("build()(beta.reshape(-1)[:128])", helpers))
    (first, second), _ = judged(tmp_path, path)
    assert first.verdict is Verdict.COMPILE_ERROR
    assert "undefined_name" in first.detail
    assert second.verdict is Verdict.PASS


def test_corrupted_cuda_context_is_a_crash_and_the_next_case_gets_a_fresh_one(
    tmp_path: Path,
) -> None:
    line = "torch.zeros(4, device='cuda')[torch.tensor([10], device='cuda')]"
    (first, second), _ = judged(tmp_path, write_submission(tmp_path / "s", forward(line)))
    assert first.verdict is Verdict.CRASH
    assert "CUDA error" in first.detail or "CUDA kernel" in first.detail
    assert second.verdict is Verdict.PASS


def test_hanging_gpu_is_a_timeout(tmp_path: Path) -> None:
    path = write_submission(tmp_path / "s", forward("torch.cuda._sleep(10**12)"))
    (first, second), _ = judged(tmp_path, path, Limits(first_call=10))
    assert first.verdict is Verdict.TIMEOUT
    assert second.verdict is Verdict.PASS


def test_result_on_the_host_is_a_bad_result(tmp_path: Path) -> None:
    path = write_submission(tmp_path / "s", forward("return output.cpu(), state"))
    (first, second), _ = judged(tmp_path, path)
    assert first.verdict is Verdict.BAD_RESULT
    assert first.detail == "output is on cpu, expected cuda:0"
    assert second.verdict is Verdict.PASS


def test_record_on_a_gpu_is_official_and_measured_by_the_reference_kernel() -> None:
    arguments = ["--cases", str(VERDICT_CASES), "--submission", str(V01)]
    result = CliRunner().invoke(
        main, [*arguments, "--baseline", "reference", "--output-format", "json"]
    )
    assert result.exit_code == 0, result.stderr
    record = from_json(result.stdout)
    assert record.protocol.official
    assert record.protocol.clock == "cuda_events"
    assert record.submission.rules is Rules.OK
    for name, t60 in record.baseline.t60_ms.items():
        # on CUDA the simple kernel is t60, and t100 = t60 / 4
        assert t60 == pytest.approx(record.baseline.timings[name].median_ms)
        assert record.baseline.t100_ms[name] == pytest.approx(t60 / 4)
    assert all(result.score > 0 for result in record.results)
    assert all(len(result.timing.samples_ms) == 100 for result in record.results)
