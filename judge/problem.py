"""From a case and a seed to input tensors, exactly as the lab draws them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from judge.case import CHUNK, HEAD_DIM, Case

# hard_forget scales the drawn gate (mean about −0.05 a token) and stops at this floor: a chunk's
# prefix sum then falls to about −250, where exp of its negative overflows float32.
HARD_FORGET_FACTOR = 80.0
HARD_FORGET_FLOOR = -20.0


@dataclass
class Inputs:
    """Raw inputs of one case.

    q, k: [B, T, Hq, 128] bfloat16, L2-normalised; v: [B, T, Hv, 128] bfloat16;
    raw_g, beta: [B, T, Hv] float32; initial_state: [B, Hv, 128, 128] (K, V) float32 or None.
    """

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    raw_g: torch.Tensor
    beta: torch.Tensor
    initial_state: torch.Tensor | None


def make_inputs(case: Case, seed: int, device: torch.device) -> Inputs:
    """Draw the inputs of `case` on `device`; the same seed gives the same bits on one device.

    Raises ValueError for a gate it does not know.
    """
    return draw_inputs(case, torch.Generator(device=device).manual_seed(seed))


def draw_inputs(case: Case, generator: torch.Generator) -> Inputs:
    """Draw the inputs of `case` on the generator's device.

    Every tensor is drawn, in float32 and in this order, before anything is overridden: an override
    leaves the other tensors as they are. Raises ValueError for a gate it does not know.
    """
    device = generator.device

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float32, device=device)

    qk_shape = (case.batch, case.tokens, case.qk_heads, HEAD_DIM)
    gate_shape = (case.batch, case.tokens, case.v_heads)
    q = F.normalize(normal(*qk_shape), dim=-1).to(torch.bfloat16)
    k = F.normalize(normal(*qk_shape), dim=-1).to(torch.bfloat16)
    v = normal(*gate_shape, HEAD_DIM).to(torch.bfloat16)
    raw_g = F.logsigmoid(normal(*gate_shape)) / 16
    beta = normal(*gate_shape).sigmoid()
    initial_state = None
    if case.initial_state is not None:
        initial_state = normal(case.batch, case.v_heads, HEAD_DIM, HEAD_DIM) * case.initial_state

    if case.equal_keys:
        first = torch.arange(case.tokens, device=device) // CHUNK * CHUNK
        k = k[:, first]
    if case.zero_values:
        v.zero_()
    if case.beta is not None:
        beta.fill_(case.beta)
    return Inputs(q, k, v, _gated(raw_g, case), beta, initial_state)


def _gated(raw_g: torch.Tensor, case: Case) -> torch.Tensor:
    """The drawn raw_g [B, T, Hv] as the case's gate has it."""
    match case.gate:
        case "random_decay":
            return raw_g
        case "mixed":
            raw_g[:, ::2] = 0
            return raw_g
        case "no_decay":
            return torch.zeros_like(raw_g)
        case "hard_forget":
            return (raw_g * HARD_FORGET_FACTOR).clamp(min=HARD_FORGET_FLOOR)
        case "constant":
            return torch.full_like(raw_g, case.gate_value)
    raise ValueError(f"unknown gate {case.gate!r}")
