"""Which of FlashInfer's files are compiled ahead, and what is told where none can be."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

import pytest
from click.testing import CliRunner

from scripts.compile_flashinfer import ARCHITECTURES, UnknownSourcesError, main, used


def test_the_files_that_the_adapters_calls_reach() -> None:
    """Names as FlashInfer 0.6.13 makes them: dtype, then g, b, a, i and c, each 0 or 1."""
    choices = itertools.product(("half", "bf16"), *["01"] * 5)
    kernels = [
        Path(f"gdn_prefill_kernel_{dtype}_g{g}b{b}a{a}i{i}c{c}.cu")
        for dtype, g, b, a, i, c in choices
    ]
    others = [Path("gdn_prefill_launcher.cu"), Path("prefill_kernel_delta_rule_sm90.cu")]
    assert len(kernels + others) == 66
    assert used(kernels + others) == [
        Path("gdn_prefill_kernel_bf16_g0b1a1i0c0.cu"),
        Path("gdn_prefill_kernel_bf16_g0b1a1i1c0.cu"),
        Path("gdn_prefill_kernel_bf16_g1b1a1i0c0.cu"),
        Path("gdn_prefill_kernel_bf16_g1b1a1i1c0.cu"),
        *others,
    ]
    with pytest.raises(UnknownSourcesError, match=r"no gdn_prefill_launcher\.cu"):
        used(kernels + others[1:])


@pytest.mark.parametrize(
    ("installed", "told"),
    [
        (False, "flashinfer-python is not installed: pip install '.[baselines]'"),
        (True, f"set {ARCHITECTURES}=9.0a: without a GPU FlashInfer has no other"),
    ],
)
def test_what_is_missing_is_told_in_a_line(
    installed: bool, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ARCHITECTURES, raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if installed else None)
    done = CliRunner().invoke(main, [])
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (2, f"Error: {told}")
