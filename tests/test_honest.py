"""Submissions that do unusual but allowed things pass on every device."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from judge.verdict import Rules, Verdict
from tests.adversary_files import Entry, honest_ones
from tests.bench import cases, note, try_entry

RUNS = int(os.environ.get("GDN_HONEST_RUNS", "1"))
"""How often each is judged in a row."""

_needs_gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
_TRIALS = [
    pytest.param(
        entry, device, case, id=f"{entry.name}-{case}", marks=_needs_gpu * (device == "gpu")
    )
    for entry in honest_ones()
    for device in ("cpu", "gpu")
    for case in ([device, "small"] if device == "gpu" else [device])
    if device in entry.devices
]


@pytest.mark.parametrize(("entry", "device", "case"), _TRIALS)
def test_honest_submission_passes(entry: Entry, device: str, case: str, tmp_path: Path) -> None:
    for trial in try_entry(entry, device, tmp_path, cases()[case], RUNS):
        note(entry, device, trial.result, trial.session.rules)
        seen = f"{trial.result.verdict}: {trial.result.detail}"
        assert trial.result.verdict is Verdict.PASS, seen
        assert trial.result.timing is not None
        if device == "gpu":
            assert trial.session.rules == (Rules.OK, "")


def test_there_are_a_dozen_honest_submissions() -> None:
    assert len(honest_ones()) >= 12
