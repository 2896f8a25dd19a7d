"""A page of memory in which the judge hands a seed to a child that has just rehearsed its call.

Reading a message between the rehearsal and the timed call, and sleeping until it comes, would leave
the processor's caches cold: the launch then takes microseconds longer than in the lab's loop.
"""

from __future__ import annotations

import fcntl
import mmap
import os

_WORD = 8
_AWAITED, _SEED = 0, 1
_NOTHING = 0


class SeedSlot:
    """Two words that both processes see: whether the child awaits a seed, and the seed.

    Each word is written by one side at a time, and no step relies on the order in which two of them
    are seen. The file's size is sealed: a child that shrank it would end the judge by SIGBUS.
    """

    def __init__(self, descriptor: int) -> None:
        self._words = memoryview(mmap.mmap(descriptor, mmap.PAGESIZE)).cast("Q")

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


def new_slot() -> tuple[SeedSlot, int]:
    """An empty slot, and the file descriptor, the caller's to close, by which a child opens it."""
    descriptor = os.memfd_create("seed", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, mmap.PAGESIZE)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        return SeedSlot(descriptor), descriptor
    except BaseException:
        os.close(descriptor)
        raise
