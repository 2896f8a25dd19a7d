"""A digest of tensors' contents, computed where they lie."""

from __future__ import annotations

import torch

_WORDS_AT_ONCE = 1 << 23
_ODD_MULTIPLIER = 0x9E3779B97F4A7C15 - (1 << 64)  # Knuth's golden-ratio constant, as signed int64


def tensor_digest(tensor: torch.Tensor) -> str:
    """Position-weighted sum modulo 2⁶⁴ of a contiguous tensor's words, as hexadecimal text.

    Any single changed word changes it: each weight is odd or made odd, hence invertible.
    """
    word = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    words = tensor.detach().reshape(-1).view(word)
    total = torch.zeros((), dtype=torch.int64, device=tensor.device)
    for start in range(0, words.numel(), _WORDS_AT_ONCE):
        part = words[start : start + _WORDS_AT_ONCE].to(torch.int64)
        index = torch.arange(start, start + part.numel(), device=tensor.device)
        total += (part * ((index * _ODD_MULTIPLIER) | 1)).sum()
    return f"{int(total.item()) & (2**64 - 1):016x}"
