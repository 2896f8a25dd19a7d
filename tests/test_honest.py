"""Submissions that do unusual but allowed things pass on every device."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from judge.verdict import Rules, Verdict
from tests.adversary_files import Entry, honest_ones
from tests.bench import try_entry

RUNS = int(os.environ.get("GDN_HONEST_RUNS", "1"))
"""How often each is judged in a row."""

_needs_gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
_TRIALS = [
    pytest.param(entry, device, id=f"{entry.name}-{device}", marks=_needs_gpu * (device == "gpu"))
    for entry in honest_ones()
    for device in ("cpu", "gpu")
    if device in entry.devices
]


@pytest.mark.parametrize(("entry", "device"), _TRIALS)
def test_honest_submission_passes(entry: Entry, device: str, tmp_path: Path) -> None:
    names = ["gpu", "small"] if device == "gpu" else ["cpu"]
    trial = try_entry(entry, device, tmp_path, [name for name in names for _ in range(RUNS)])
    for result in trial.results:
        assert result.verdict is Verdict.PASS, f"{result.verdict}: {result.detail}"
        assert result.timing is not None
    if device == "gpu":
        assert trial.rules == (Rules.OK, "")


def test_there_are_a_dozen_honest_submissions() -> None:
    assert len(honest_ones()) >= 12
