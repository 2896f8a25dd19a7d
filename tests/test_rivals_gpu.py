"""Public implementations as they are installed, and live baselines, on a CUDA device."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from judge.audit import NO_AUDITS, Answers, AuditSeeds, answers
from judge.caches import checkpoint_folder
from judge.case import Case
from judge.child.log import ChildLog
from judge.cli import main
from judge.home import CACHE_VARIABLE
from judge.implementations import FULL, Implementation, public_implementations
from judge.record import from_json
from judge.repetitions import Repetitions
from judge.suites import load_suite
from judge.verdict import Verdict
from tests.trial import ROOT, SEED, new_session

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

PUBLIC = {case.name: case for case in load_suite(ROOT / "cases" / "public.yaml").cases}
V01 = ROOT / "submissions" / "v01_gemm"
INSTALLED = public_implementations()
needs_one = pytest.mark.skipif(
    not any(one.scope == FULL for one in INSTALLED), reason="no public implementation is installed"
)


@pytest.mark.parametrize("name", ["short_tail_state", "parallel_gva", "batch_split_gva"])
@pytest.mark.parametrize("one", INSTALLED, ids=lambda one: f"{one.name}-{one.scope}")
def test_an_installed_implementation_is_right_and_can_be_timed(
    tmp_path: Path, one: Implementation, name: str
) -> None:
    """Against float64 from raw inputs; then once more with contents drawn by a captured graph."""
    log = ChildLog(tmp_path / "log.txt")
    session = new_session(one.submission, log, device="cuda:0", inputs=one.inputs)
    case = PUBLIC[name]
    try:
        result = session.judge("public", untimed(case), SEED, Repetitions(0, 1), known(case))
        if result.verdict is Verdict.IMPORT_ERROR and "is not compiled" in result.detail:
            pytest.skip(result.detail)
        assert result.verdict is Verdict.PASS, result.detail
        assert session.repeat().claimed_ms > 0
    finally:
        session.close()
        log.close()


def untimed(case: Case) -> Case:
    return replace(case, timed=False)


def known(case: Case) -> Answers:
    return answers(case, SEED, NO_AUDITS, AuditSeeds(), torch.device("cuda:0"))


def run(*arguments: str) -> str:
    result = CliRunner().invoke(main, ["--submission", str(V01), *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@needs_one
def test_a_live_run_and_the_lab_s_extended_csv() -> None:
    options = ("--case", "short_tail_state", "--repetitions", "10", "--reference-benchmarks")
    record = from_json(run(*options, "--baseline", "live", "--output-format", "json"))
    assert record.baseline.source == "live"
    roles = {one.role: one for one in record.rivals if one.role}
    assert record.baseline.t100_ms == {"short_tail_state": roles["t100"].timing.median_ms}
    assert all(len(one.timing.samples_ms) == 10 for one in record.rivals if one.timing)
    assert record.results[0].score > 0
    assert record.results[0].gpu_ms > 0
    assert record.results[0].gpu_ms_by == "graph"
    assert all(one.gpu_ms > 0 for one in record.rivals if one.timing)
    lines = run(*options, "--baseline", "none", "--output-format", "csv").splitlines()
    assert lines[0] == "case,scope,implementation,correctness,median_ms,reference_over_student"
    assert lines[1].startswith("short_tail_state,student_core,student,PASS,")
    assert lines[2].startswith("short_tail_state,full_forward,student,PASS,")
    assert len(lines) == 3 + sum(one.scope == FULL for one in INSTALLED)


@needs_one
def test_a_calibrated_file_is_what_later_runs_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    file = tmp_path / "one.yaml"
    file.write_text(
        "suite: one\ntolerance: 5e-3\ncases:\n"
        "  - {name: small, batch: 1, tokens: 1025, qk_heads: 2, v_heads: 8}\n"
    )
    arguments = ["calibrate", "--cases", str(file), "--repetitions", "10"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    (written,) = checkpoint_folder().glob("*.yaml")
    assert result.stdout.strip() == str(written)
    assert json.loads(written.with_suffix(".json").read_text())[0]["case"] == "small"
    record = from_json(run("--cases", str(file), "--output-format", "json"))
    assert (record.baseline.source, record.baseline.name) == ("checkpoints", written.stem)
    assert record.results[0].score > 0
