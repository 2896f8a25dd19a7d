"""FlashInfer's prefill, whole forward, its layouts turned into ours inside the call.

It takes the decay itself instead of its logarithm, sequences laid end to end without a batch
dimension, and states as [V, K]. Its kernel for Hopper must have been compiled before: left to
itself the library compiles 66 files at the first call, which can take the best part of an hour.
"""

from __future__ import annotations

import torch
from flashinfer.gdn_prefill import chunk_gated_delta_rule

_KERNEL = "gdn_prefill_sm90"


def _require_compiled_kernel() -> None:
    from flashinfer.jit import env

    library = env.FLASHINFER_AOT_DIR / _KERNEL / f"{_KERNEL}.so"
    if not library.is_file():
        raise ImportError(f"flashinfer's kernel is not compiled: there is no {library}")


if torch.cuda.is_available() and torch.cuda.get_device_capability()[0] == 9:
    _require_compiled_kernel()


def gdn_prefill_forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    raw_g: torch.Tensor,
    beta: torch.Tensor,
    initial_state: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Arguments and results as in `reference.baselines`."""
    batch, tokens = q.shape[:2]
    with torch.no_grad():
        bounds = torch.arange(batch + 1, dtype=torch.int64, device=q.device) * tokens
        output, state = chunk_gated_delta_rule(
            q.flatten(0, 1),
            k.flatten(0, 1),
            v.flatten(0, 1),
            raw_g.exp().flatten(0, 1),
            beta.flatten(0, 1),
            scale=q.shape[-1] ** -0.5,
            initial_state=None if initial_state is None else initial_state.mT.contiguous(),
            output_final_state=True,
            cu_seqlens=bounds,
        )
    return output.unflatten(0, (batch, tokens)), state.mT.contiguous()
