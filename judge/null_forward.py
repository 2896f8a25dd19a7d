"""A submission that does nothing: the strict protocol subtracts what a repetition of it takes."""

import torch

_RESULTS: dict[tuple[int, ...], tuple[torch.Tensor, torch.Tensor]] = {}


def gdn_prefill_forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g_cumsum: torch.Tensor,
    beta: torch.Tensor,
    A: torch.Tensor,
    initial_state: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return buffers of the right form, the same at every call with v's shape."""
    if v.shape not in _RESULTS:
        _RESULTS.clear()
        batch, _, v_heads, head_dim = v.shape
        state_shape = (batch, v_heads, head_dim, head_dim)
        state = torch.zeros(state_shape, dtype=torch.float32, device=v.device)
        _RESULTS[v.shape] = torch.zeros_like(v), state
    return _RESULTS[v.shape]
