"""Compiling FLA's kernels ahead: who compiles which configuration, and what is told."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

import pytest
import torch
from click.testing import CliRunner

from judge.environment import installed_version
from scripts.compile_fla import call_with_share, main
from tests.checking import smoke_cases

KERNELS = {"cumsum": 4, "kkt_solve": 6, "w_u": 9}
"""How many configurations each has."""


class Autotuner:
    """Triton's, as far as the script reaches into it."""

    compiled: list[tuple[str, int]]

    def _bench(self, kernel: str, *, config: int) -> Sequence[float]:
        Autotuner.compiled.append((kernel, config))
        return [1.0 + config, 1.0, 1.0]

    def run(self, kernel: str) -> int:
        """The configuration that is chosen, as Triton chooses it."""
        timings = {config: self._bench(kernel, config=config) for config in range(KERNELS[kernel])}
        return min(timings, key=timings.get)


@pytest.fixture
def fla(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """A Triton and an adapter that tunes three kernels; what was compiled."""
    chosen: list[tuple[str, int]] = []

    def forward(*arguments: object) -> None:
        assert len(arguments) == 6
        chosen.extend((kernel, Autotuner().run(kernel)) for kernel in KERNELS)

    triton, adapter = ModuleType("triton.runtime.autotuner"), ModuleType("fla_triton")
    triton.Autotuner, adapter.gdn_prefill_forward = Autotuner, forward
    monkeypatch.setitem(sys.modules, "triton", ModuleType("triton"))
    monkeypatch.setitem(sys.modules, "triton.runtime", ModuleType("triton.runtime"))
    monkeypatch.setitem(sys.modules, "triton.runtime.autotuner", triton)
    monkeypatch.setitem(sys.modules, "reference.baselines.fla_triton", adapter)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    Autotuner.compiled = []
    return chosen


@pytest.mark.parametrize("shares", [1, 2, 3])
def test_each_configuration_is_compiled_by_one_share(
    fla: list[tuple[str, int]], shares: int
) -> None:
    case = smoke_cases()[0]
    for share in range(shares):
        assert call_with_share(case, share, shares, "cpu") >= 0
    every = [(kernel, config) for kernel, count in KERNELS.items() for config in range(count)]
    assert sorted(Autotuner.compiled) == sorted(every)
    assert len(fla) == shares * len(KERNELS)
    assert set(fla) <= set(Autotuner.compiled)


def test_the_autotuner_is_left_as_it_was(fla: list[tuple[str, int]]) -> None:
    before = Autotuner._bench
    call_with_share(smoke_cases()[0], 0, 2, "cpu")
    assert Autotuner._bench is before


def test_what_it_needs_is_said_in_one_line() -> None:
    result = CliRunner().invoke(main, ["--device", "cpu"])
    assert result.exit_code == 2
    last = result.output.strip().splitlines()[-1]
    if installed_version("fla-core") is None:
        assert last == "Error: fla-core is not installed: there is nothing to compile"
    else:
        assert last == "Error: needs a CUDA device; cpu is none"
