"""Digests of tensors' contents, computed where they lie."""

from __future__ import annotations

import hashlib

import torch
import torch.nn.functional as F

_WORDS_AT_ONCE = 1 << 23
_BLOCK_WORDS = 4096
# Odd 64-bit multipliers of SplitMix64 (Steele, Lea and Flood, 2014), as signed int64.
_STEP = 0x9E3779B97F4A7C15 - (1 << 64)
_MIX_1 = 0xBF58476D1CE4E5B9 - (1 << 64)
_MIX_2 = 0x94D049BB133111EB - (1 << 64)


def tensor_digest(tensor: torch.Tensor) -> str:
    """Hexadecimal digest of a tensor's elements in order; equal on devices of one type only.

    On a CPU the SHA-256 of its bytes. On CUDA, where moving the bytes would cost more than the
    check is worth, the SHA-256 of one 64-bit sum a block of 4096 words, each word mixed with its
    position before it is added (SplitMix64's steps).
    """
    raw = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    if tensor.device.type == "cpu":
        return hashlib.sha256(raw.numpy()).hexdigest()
    if raw.numel() % 8 or raw.storage_offset() % 8:
        raw = F.pad(raw, (0, -raw.numel() % 8))
    words = raw.view(torch.int64)
    sums = [
        _block_sums(words[start : start + _WORDS_AT_ONCE], start)
        for start in range(0, words.numel(), _WORDS_AT_ONCE)
    ]
    return hashlib.sha256(torch.cat(sums).cpu().numpy()).hexdigest()


def result_digest(output: torch.Tensor, final_state: torch.Tensor) -> str:
    """Digest of what a call returned."""
    return f"{tensor_digest(output)}:{tensor_digest(final_state)}"


def _block_sums(words: torch.Tensor, first_position: int) -> torch.Tensor:
    """Sums modulo 2⁶⁴ over blocks of mixed words: int64 [ceil(words / 4096)]."""
    last_position = first_position + words.numel()
    mixed = torch.arange(first_position, last_position, device=words.device)
    mixed.mul_(_STEP).add_(words)
    mixed.bitwise_xor_(mixed >> 30).mul_(_MIX_1)
    mixed.bitwise_xor_(mixed >> 27).mul_(_MIX_2)
    mixed = F.pad(mixed, (0, -mixed.numel() % _BLOCK_WORDS))
    return mixed.view(-1, _BLOCK_WORDS).sum(1)
