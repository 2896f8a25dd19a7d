"""Which public implementations there are, and what their adapters hand over and back."""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from judge import implementations
from judge.child.arguments import InputForm
from judge.implementations import missing_packages, public_implementations, versions_of
from judge.problem import make_inputs
from reference.chunked import float64_reference
from tests.make_record import make_case
from tests.trial import ROOT

CASE = make_case("two_batches", (2, 65, 1, 2), initial_state=1.0)


def test_only_what_is_installed_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implementations, "installed_version", {"flash-qla": "0.1.3"}.get)
    found = public_implementations()
    assert [(one.name, one.scope, one.inputs) for one in found] == [
        ("flash_qla", "full_forward", InputForm.RAW),
        ("flash_qla", "core", InputForm.OWN),
    ]
    assert versions_of(found) == {"flash_qla": "0.1.3"}
    assert missing_packages() == ["fla-core", "flashinfer-python"]
    assert len({one.submission.digest for one in found}) == 2


def loaded(monkeypatch: pytest.MonkeyPatch, file: str, **modules: ModuleType) -> ModuleType:
    """An adapter with stand-ins for the library's modules; dots in their names are double."""
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name.replace("__", "."), module)
    spec = importlib.util.spec_from_file_location("adapter", ROOT / "reference/baselines" / file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_flashinfer_gets_its_layouts_and_returns_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in takes what FlashInfer 0.6.13 documents: alpha, flat tokens, [V, K] states."""

    def documented(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        g: torch.Tensor,
        beta: torch.Tensor,
        *,
        scale: float,
        initial_state: torch.Tensor | None,
        output_final_state: bool,
        cu_seqlens: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        assert output_final_state
        assert scale == pytest.approx(128**-0.5)
        for tensor in (q, k, v, g, beta):
            assert tensor.is_contiguous()
            assert tensor.shape[0] == cu_seqlens[-1]
        outputs, states = [], []
        bounds = cu_seqlens.tolist()
        for number, (first, end) in enumerate(itertools.pairwise(bounds)):
            one = [tensor[first:end].unsqueeze(0) for tensor in (q, k, v, g.log(), beta)]
            state = None if initial_state is None else initial_state[number : number + 1].mT
            output, final_state = float64_reference(*one, state)
            outputs.append(output[0].to(q.dtype))
            states.append(final_state[0].mT.float())
        return torch.cat(outputs), torch.stack(states).contiguous()

    library = ModuleType("flashinfer.gdn_prefill")
    library.chunk_gated_delta_rule = documented
    names = {"flashinfer": ModuleType("flashinfer"), "flashinfer__gdn_prefill": library}
    adapter = loaded(monkeypatch, "flashinfer_prefill.py", **names)
    inputs = make_inputs(CASE, 42, torch.device("cpu"))
    raw = (inputs.q, inputs.k, inputs.v, inputs.raw_g, inputs.beta)
    for state in (inputs.initial_state, None):
        output, final_state = adapter.gdn_prefill_forward(*raw, state)
        expected, expected_state = float64_reference(*raw, state)
        assert output.dtype == torch.bfloat16
        assert final_state.is_contiguous()
        torch.testing.assert_close(output.double(), expected.double(), rtol=8e-3, atol=1e-3)
        torch.testing.assert_close(
            final_state.double(), expected_state.double(), rtol=1e-4, atol=1e-4
        )


def test_flashinfer_without_its_compiled_kernel_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    library = ModuleType("flashinfer.gdn_prefill")
    library.chunk_gated_delta_rule = None
    environment = ModuleType("flashinfer.jit.env")
    environment.FLASHINFER_AOT_DIR = tmp_path
    jit = ModuleType("flashinfer.jit")
    jit.env = environment
    names = {"flashinfer": ModuleType("flashinfer"), "flashinfer__gdn_prefill": library}
    names |= {"flashinfer__jit": jit, "flashinfer__jit__env": environment}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    with pytest.raises(ImportError, match=r"is not compiled: there is no .*/gdn_prefill_sm90\.so"):
        loaded(monkeypatch, "flashinfer_prefill.py", **names)
    (tmp_path / "gdn_prefill_sm90").mkdir()
    (tmp_path / "gdn_prefill_sm90" / "gdn_prefill_sm90.so").touch()
    loaded(monkeypatch, "flashinfer_prefill.py", **names)


def test_fla_is_told_to_use_its_own_kernels_before_it_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FLA_FLASH_QLA", "1")
    given = {}
    library = ModuleType("fla.ops.gated_delta_rule")

    def called(*tensors: torch.Tensor, **options: object) -> tuple[torch.Tensor, torch.Tensor]:
        given.update(options, flash_qla=os.environ["FLA_FLASH_QLA"], tensors=tensors)
        return tensors[2], tensors[2]

    library.chunk_gated_delta_rule = called
    names = {"fla": ModuleType("fla"), "fla__ops": ModuleType("fla.ops")}
    adapter = loaded(monkeypatch, "fla_triton.py", **names, fla__ops__gated_delta_rule=library)
    inputs = make_inputs(CASE, 42, torch.device("cpu"))
    raw = (inputs.q, inputs.k, inputs.v, inputs.raw_g, inputs.beta)
    adapter.gdn_prefill_forward(*raw, inputs.initial_state)
    assert given["flash_qla"] == "0"
    assert given["output_final_state"] is True
    assert given["initial_state"] is inputs.initial_state
    assert all(one is other for one, other in zip(given["tensors"], raw, strict=True))
