"""From a case and a seed to input tensors, exactly as the lab draws them."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from judge.case import HEAD_DIM, Case


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
    """Draw the inputs of `case` on `device`; the same seed gives the same bits on one device."""
    raise NotImplementedError


_ = HEAD_DIM
