"""Lanes on GPUs: one for each that is there, with kernels that were compiled before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from judge.cli import main
from judge.engines.devices import CORES_PER_LANE, own_cores
from judge.run_log import run_log_path
from judge.store.store import Store
from judge.submission import ENTRY
from judge.verdict import Verdict
from tests.trial import ROOT

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
V01 = ROOT / "submissions" / "v01_gemm" / ENTRY
NUMBER = 6


def test_every_gpu_has_a_lane_and_kernels_are_there_before_it(tmp_path: Path) -> None:
    for number in range(NUMBER):
        path = tmp_path / "in" / f"s{number}" / ENTRY
        path.parent.mkdir(parents=True)
        path.write_text(f"{V01.read_text()}\nNUMBER = {number}\n")
    store = tmp_path / "store.sqlite"
    words = ["--suite", "smoke", "--baseline", "none", "--store", str(store)]
    done = CliRunner().invoke(main, ["grade", str(tmp_path / "in"), *words])
    assert done.exit_code == 0, done.output
    events = [json.loads(line) for line in run_log_path(store).read_text().splitlines()]
    begin, uploads = events[0], events[1:-1]
    gpus = torch.cuda.device_count()
    assert len(begin["lanes"]) == len(set(begin["lanes"])) == gpus
    assert {upload["lane"] for upload in uploads} == set(begin["lanes"][:NUMBER])
    with Store(store) as kept:
        records = [graded.record for graded in kept.results()]
        assert kept.count() == NUMBER
    assert {r.verdict for record in records for r in record.results} == {Verdict.PASS}
    assert all(not r.noisy or "other" not in r.noisy for o in records for r in o.results)
    hopper = torch.cuda.get_device_capability() == (9, 0)
    if hopper and len(own_cores()) >= (CORES_PER_LANE + 1) * gpus:
        assert begin["compile_workers"] > 0
        assert all(upload["compile_s"] > 0 for upload in uploads)


def test_one_device_that_is_named_has_the_only_lane(tmp_path: Path) -> None:
    path = tmp_path / "in" / "a.py"
    path.parent.mkdir()
    path.write_text("def gdn_prefill_forward(*inputs):\n    raise ValueError('x')\n")
    store = tmp_path / "store.sqlite"
    last = torch.cuda.device_count() - 1
    words = ["--suite", "smoke", "--device", f"cuda:{last}", "--store", str(store)]
    done = CliRunner().invoke(main, ["grade", str(tmp_path / "in"), "--baseline", "none", *words])
    assert done.exit_code == 0, done.output
    begin = json.loads(run_log_path(store).read_text().splitlines()[0])
    uuid = torch.cuda.get_device_properties(last).uuid
    assert begin["lanes"] == [f"GPU-{uuid}"]
