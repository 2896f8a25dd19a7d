"""What the champion's scripts measure is what its page reads, here with PyTorch on a CPU."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import torch

from judge.submission import find_submission
from judge.verdict import Verdict
from reference.preprocess import preprocess_for
from scripts.champion.outcomes import UNCHANGED, Outcomes
from scripts.in_process import Result, function_of, run_now
from scripts.sweep_shapes import prepared, shapes, sweep
from scripts.vary_champion import measured
from tests.make_record import make_case

pytest.importorskip("matplotlib")

from scripts.champion.raw import read_raw

ROOT = Path(__file__).resolve().parents[1]
STARTER = ROOT / "submissions" / "starter"
CPU = torch.device("cpu")


def test_a_sweep_is_read_as_it_was_written(tmp_path: Path) -> None:
    starter = prepared(STARTER)
    cases = [case for case in shapes(("mixed",), (64,)) if case.batch * case.v_heads <= 4]
    file = tmp_path / "sweep.csv"
    run = run_now(CPU, [STARTER])
    (tmp_path / "sweep.json").write_bytes(msgspec.json.encode(run))
    sweep([starter, starter], preprocess_for(CPU), CPU, cases, 1000.0, file)
    (found,) = read_raw(tmp_path, tmp_path / "ladder", tmp_path / "baselines").sweeps
    assert found.run == run
    assert found.run.digests == {"starter": find_submission(STARTER).digest}
    sizes = [(one.batch, one.tokens, one.qk_heads, one.v_heads, one.gate) for one in found.shapes]
    assert sizes == [(c.batch, c.tokens, c.qk_heads, c.v_heads, "mixed") for c in cases]
    assert all(one.medians_ms["starter"] > 0 for one in found.shapes)
    assert all(one.difference == 0 for one in found.shapes)


def test_a_sweep_above_its_limit_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    starter = prepared(STARTER)
    case = next(shapes(("random_decay",), (64,)))
    file = tmp_path / "sweep.csv"
    assert sweep([starter, starter], preprocess_for(CPU), CPU, [case], 0.0, file)
    assert capsys.readouterr().out.startswith("1 64 1 1 random_decay ")


def test_variants_are_read_as_they_were_written(tmp_path: Path) -> None:
    starter = function_of(STARTER)

    def zeros(*arguments: torch.Tensor) -> Result:
        return tuple(torch.zeros_like(tensor) for tensor in starter(*arguments))

    def nothing(*arguments: torch.Tensor) -> Result:
        return tuple(torch.full_like(tensor, float("nan")) for tensor in starter(*arguments))

    functions = {UNCHANGED: starter, "zeros": zeros, "nan": nothing}
    found = measured(make_case("x"), functions, preprocess_for(CPU), CPU)
    record = Outcomes(run_now(CPU, [STARTER]), [], found)
    (tmp_path / "variants.json").write_bytes(msgspec.json.encode(record))
    assert read_raw(tmp_path, tmp_path / "ladder", tmp_path / "baselines").variants == record
    verdicts = {one.variant: one.verdict for one in found}
    assert verdicts == {
        UNCHANGED: Verdict.PASS,
        "zeros": Verdict.WRONG,
        "nan": Verdict.BAD_RESULT,
    }
    champion, wrong, bad = found
    assert max(champion.errors) < 1 < max(wrong.errors)
    assert bad.errors == []
