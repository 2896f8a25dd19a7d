"""The one module of the lab's own harness that participants' files import: references.torch_gdr."""

from __future__ import annotations

import sys
from types import ModuleType

import torch

from judge.rules import LAB_MODULE
from reference.chunked import chunked_forward

LAB_PACKAGE = LAB_MODULE.partition(".")[0]


def install_lab_modules() -> None:
    """Make `from references.torch_gdr import torch_gdn_prefill_forward` work in this process."""
    package = ModuleType(LAB_PACKAGE, "Stands in for the package of the lab's harness.")
    package.__path__ = []
    module = ModuleType(LAB_MODULE, torch_gdn_prefill_forward.__doc__)
    module.torch_gdn_prefill_forward = torch_gdn_prefill_forward
    package.torch_gdr = module
    sys.modules[package.__name__] = package
    sys.modules[module.__name__] = module


def reference_was_called() -> bool:
    """Whether anything in this process has called the lab's reference."""
    return torch_gdn_prefill_forward.calls > 0


def torch_gdn_prefill_forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g_cumsum: torch.Tensor,
    beta: torch.Tensor,
    A: torch.Tensor,
    initial_state: torch.Tensor | None = None,
    *,
    dtype: torch.dtype = torch.float64,
    student_interface: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The lab's PyTorch forward: shapes as in docs/lab.md, results in `dtype`.

    With `student_interface` it computes in float32 and returns what a submission must return:
    output bfloat16 and final_state float32.
    """
    torch_gdn_prefill_forward.calls += 1
    compute = torch.float32 if student_interface else dtype
    output, state = chunked_forward(q, k, v, g_cumsum, beta, A, initial_state, dtype=compute)
    if student_interface:
        return output.to(torch.bfloat16), state.to(torch.float32)
    return output, state


torch_gdn_prefill_forward.calls = 0
