"""Memory that the judge and one child both see: a slot for seeds, and behind it room for results.

It is a file without a name, as long as it ever needs to be; only what is written takes memory. Its
size is sealed: a child that shrank it would end the judge by SIGBUS.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Sequence

import numpy as np
import torch

_BYTES = 1 << 36
_SLOT_BYTES = mmap.ALLOCATIONGRANULARITY
_AWAITED, _SEED = 0, 1  # words of the slot
_NOTHING = 0


def new_shared_memory() -> int:
    """The file descriptor of new memory, all zeros; it is the caller's to close."""
    descriptor = os.memfd_create("judge", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, _BYTES)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


class SeedSlot:
    """Two words: whether the child awaits a seed, and the seed.

    A message in its place would be read between the rehearsal of a call and the call, and waited
    for asleep: the launch then finds the processor's caches cold. Each word is written by one side
    at a time, and no step relies on the order in which two of them are seen.
    """

    def __init__(self, descriptor: int) -> None:
        self._words = memoryview(mmap.mmap(descriptor, _SLOT_BYTES)).cast("Q")

    def is_awaited(self) -> bool:
        """The judge's side: whether the child waits."""
        return self._words[_AWAITED] != 0

    def hand_over(self, seed: int) -> None:
        """The judge's side: let the waiting child have a seed, from 0 to 2**64 - 2."""
        self._words[_AWAITED] = 0
        self._words[_SEED] = seed + 1

    def wait(self) -> int:
        """The child's side: the seed, as soon as it is there; the core stays busy until then."""
        words = self._words
        words[_AWAITED] = 1
        while (found := words[_SEED]) == _NOTHING:
            pass
        words[_SEED] = _NOTHING
        return found - 1


class ResultArea:
    """Bytes that follow a reply; how many, the judge knows from its request and the case."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._mapped: mmap.mmap | None = None

    def put(self, tensors: Sequence[torch.Tensor]) -> None:
        """The child's side: the bytes of contiguous tensors of any device, one behind the other."""
        sizes = [tensor.nbytes for tensor in tensors]
        room = torch.frombuffer(self._room(sum(sizes)), dtype=torch.uint8)
        for tensor, part in zip(tensors, room.split(sizes), strict=True):
            part.copy_(tensor.reshape(-1).view(torch.uint8))

    def take(self, sizes: Sequence[int]) -> list[memoryview]:
        """The judge's side: copies, which the child cannot change between two looks at them."""
        room = np.frombuffer(self._room(sum(sizes)), np.uint8)
        copies, start = [], 0
        for size in sizes:
            copies.append(memoryview(room[start : start + size].copy()))
            start += size
        return copies

    def _room(self, count: int) -> memoryview:
        if self._mapped is None or len(self._mapped) < count:
            self._mapped = mmap.mmap(self._descriptor, count, offset=_SLOT_BYTES)
        return memoryview(self._mapped)[:count]
