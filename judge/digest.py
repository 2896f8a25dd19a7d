"""Digests of tensors' contents, computed where they lie."""

from __future__ import annotations

import hashlib

import torch
import torch.nn.functional as F

_ROWS = 16
_FEW_WORDS = 1 << 16
# Odd 64-bit multipliers of SplitMix64 (Steele, Lea and Flood, 2014), as signed int64.
_STEP = 0x9E3779B97F4A7C15 - (1 << 64)
_MIX = 0xBF58476D1CE4E5B9 - (1 << 64)


def tensor_digest(tensor: torch.Tensor) -> str:
    """Hexadecimal digest of a tensor's elements in order; equal on devices of one type only.

    On a CPU the SHA-256 of its bytes. On CUDA, where moving the bytes would cost more than the
    check is worth, the SHA-256 of what `folded` leaves of them.
    """
    if tensor.device.type == "cpu":
        raw = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
        return hashlib.sha256(raw.numpy()).hexdigest()
    return digest_of_words([folded(tensor).cpu()])


def result_digest(output: torch.Tensor, final_state: torch.Tensor) -> str:
    """Digest of what a call returned; equal on devices of one type only."""
    if output.device.type == "cpu":
        return f"{tensor_digest(output)}:{tensor_digest(final_state)}"
    return digest_of_words([folded(output).cpu(), folded(final_state).cpu()])


def digest_of_words(parts: list[torch.Tensor]) -> str:
    """Hexadecimal SHA-256 of words that lie on the CPU."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.numpy())
    return digest.hexdigest()


def folded(tensor: torch.Tensor) -> torch.Tensor:
    """At most 65536 words that depend on every bit of a tensor and on its elements' order: int64.

    Sixteen words at a time are chained, each mixed into all that came before it: sums of mixed
    words, which are quicker, can be steered by flipping last bits (a generalised birthday).
    """
    raw = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    if raw.numel() % 8 or raw.storage_offset() % 8:
        raw = F.pad(raw, (0, -raw.numel() % 8))
    words = _chained(raw.view(torch.int64))
    while words.numel() > _FEW_WORDS:
        words = _chained(words)
    return words


def _chained(words: torch.Tensor) -> torch.Tensor:
    """One word for every sixteen, which lie in as many rows: int64 [ceil(words / 16)]."""
    rows = F.pad(words, (0, -words.numel() % _ROWS)).view(_ROWS, -1)
    state = torch.arange(1, rows.shape[1] + 1, device=words.device).mul_(_STEP)
    for row in rows:
        state.bitwise_xor_(row).mul_(_MIX)
        state.bitwise_xor_(state >> 30)
    return state
