"""A device that no longer answers: how it is noticed, and how a run ends then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from judge import grading
from judge.cli import main
from judge.device_probe import device_problem
from tests.trial import write_submission

CUDA = torch.device("cuda", 3)


@pytest.mark.parametrize(
    ("probe", "problem"),
    [
        ("import sys; assert sys.argv[1] == '3'", ""),
        ("import time; time.sleep(60)", "the GPU does not answer: a probe hung for 1 s"),
        ("import sys; sys.exit('CUDA_ERROR_X')", "the GPU does not answer: CUDA_ERROR_X"),
        ("import os; os.abort()", "the GPU does not answer: exit status -6"),
    ],
)
def test_probe_s_end_says_whether_the_device_answers(probe: str, problem: str) -> None:
    assert device_problem(CUDA, probe, limit_s=1.0) == problem


def test_probe_is_a_program_that_loads_the_driver() -> None:
    if torch.cuda.is_available():
        assert device_problem(torch.device("cuda", 0)) == ""
    else:
        assert "libcuda.so.1" in device_problem(CUDA)


def test_cpu_always_answers() -> None:
    assert device_problem(torch.device("cpu"), "raise SystemExit(1)") == ""


def test_run_ends_with_what_is_finished_where_the_device_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grading, "device_problem", lambda device: "the GPU is wedged")
    path = write_submission(
        tmp_path / "s",
        "def gdn_prefill_forward(q, k, v, g_cumsum, beta, A, initial_state=None):\n"
        "    if not first_case(q):\n"
        "        raise ValueError('boom')\n"
        "    return right(q, k, v, g_cumsum, beta, A, initial_state)\n",
    )
    cases = tmp_path / "cases.yaml"
    text = Path(__file__).with_name("verdict_cases.yaml").read_text()
    cases.write_text(text + text[text.index("  - {name: second") :].replace("second", "third"))
    done = CliRunner().invoke(
        main,
        [
            *("--submission", str(path), "--cases", str(cases), "--device", "cpu"),
            *("--baseline", "none", "--output-format", "json"),
        ],
    )
    record = json.loads(done.stdout)
    assert done.exit_code == 130
    assert [result["verdict"] for result in record["results"]] == ["PASS", "CRASH"]
    assert record["interrupted"]
    assert "the run ends here: the GPU is wedged" in record["notes"]
