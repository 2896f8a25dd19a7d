"""Memory that the judge and one child both see: a slot for seeds, and behind it room for results.

It is a file without a name and of a fixed size, of which only what is touched takes memory. The
size is sealed: a child that shrank it would end the judge by SIGBUS.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
from collections.abc import Sequence

import torch

from judge.child.errors import ChildError

_BYTES = 4 << 30  # no more than a child may write into any file
_MOST_PINNED = 1 << 28
_SLOT_BYTES = mmap.ALLOCATIONGRANULARITY
_AWAITED, _SEED = 0, 1  # words of the slot
_NOTHING = 0
# linux/memfd.h and linux/fcntl.h: not every build of Python has names for them
_CLOSE_ON_EXEC, _ALLOW_SEALING = 1, 2
_ADD_SEALS = 1033
_NO_MORE_SEALS, _NO_SHRINKING, _NO_GROWING = 1, 2, 4


class JudgeMemory:
    """The judge's side, which makes the memory.

    Each word of the slot is written by one side at a time, and no step relies on the order in which
    two of them are seen. Raises OSError where the system has no such memory.
    """

    def __init__(self) -> None:
        self.descriptor = _sealed_file()
        try:
            self._slot = mmap.mmap(self.descriptor, _SLOT_BYTES)
        except BaseException:
            os.close(self.descriptor)
            raise
        self._words = memoryview(self._slot).cast("Q")

    def is_seed_awaited(self) -> bool:
        """Whether the child waits for a seed."""
        return self._words[_AWAITED] != 0

    def hand_over(self, seed: int) -> None:
        """Let the waiting child have a seed, from 0 to 2**64 - 2."""
        self._words[_AWAITED] = 0
        self._words[_SEED] = seed + 1

    def take(self, sizes: Sequence[int]) -> list[memoryview]:
        """What the child put there, as copies, which it cannot change between two looks.

        Read as a file: what is mapped here takes memory as soon as it is looked at. Raises
        ChildError where it cannot have put so much.
        """
        copies, start = [], _SLOT_BYTES
        for size in sizes:
            copy = _buffer(size)
            done = 0
            while done < size:
                count = os.preadv(self.descriptor, [copy[done:]], start + done)
                if count == 0:
                    raise ChildError(f"results of {sum(sizes)} bytes do not fit into its memory")
                done += count
            copies.append(copy)
            start += size
        return copies

    def close(self) -> None:
        """Give the memory back, once the child has ended; a second time does nothing."""
        if not self._slot.closed:
            self._words.release()
            self._slot.close()
            os.close(self.descriptor)


class ChildMemory:
    """The child's side. descriptor: of the file, inherited from the judge."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._words = memoryview(mmap.mmap(descriptor, _SLOT_BYTES)).cast("Q")
        self._area: mmap.mmap | None = None

    def wait_for_seed(self) -> int:
        """The seed, as soon as it is there; the core stays busy until then.

        A message in its place would be waited for asleep, and read between the rehearsal of a call
        and the call: the launch then finds the processor's caches cold.
        """
        words = self._words
        words[_AWAITED] = 1
        while (found := words[_SEED]) == _NOTHING:
            pass
        words[_SEED] = _NOTHING
        return found - 1

    def put(self, tensors: Sequence[torch.Tensor]) -> None:
        """The bytes of contiguous tensors of any device, one behind the other."""
        sizes = [tensor.nbytes for tensor in tensors]
        if self._area is None or len(self._area) < sum(sizes):
            self._area = mmap.mmap(self._descriptor, sum(sizes), offset=_SLOT_BYTES)
        room = torch.frombuffer(self._area, dtype=torch.uint8, count=sum(sizes))
        for tensor, part in zip(tensors, room.split(sizes), strict=True):
            part.copy_(tensor.reshape(-1).view(torch.uint8))


def _buffer(size: int) -> memoryview:
    """Memory that need not be zeros.

    Beside a GPU it is pinned, up to a size: PyTorch then keeps it for the next result, so that no
    page is touched for the first time, and copies it to the device without a copy of its own.
    """
    pinned = size <= _MOST_PINNED and torch.cuda.is_initialized()
    return memoryview(torch.empty(size, dtype=torch.uint8, pin_memory=pinned).numpy())


def _sealed_file() -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "memfd_create"):
        raise OSError("the C library has no memfd_create (glibc 2.27 and musl 1.1.20 have)")
    descriptor = libc.memfd_create(b"judge", _CLOSE_ON_EXEC | _ALLOW_SEALING)
    if descriptor < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"memfd_create: {os.strerror(number)}")
    try:
        os.ftruncate(descriptor, _BYTES)
        fcntl.fcntl(descriptor, _ADD_SEALS, _NO_MORE_SEALS | _NO_SHRINKING | _NO_GROWING)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
