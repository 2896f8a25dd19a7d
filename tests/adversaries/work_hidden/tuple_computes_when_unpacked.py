"""A subclass of tuple that computes when it is unpacked, after the clock has stopped.

Caught as: BAD_RESULT or CHEAT
Needs: CPU or GPU
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result


class _Later(tuple):
    arguments: tuple[Argument, ...] | None = None
    result: Result | None = None

    def _done(self) -> Result:
        if self.result is None:
            self.result = right(*self.arguments)
        return self.result

    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter(self._done())

    def __getitem__(self, place: int) -> torch.Tensor:
        return self._done()[place]


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """A promise."""
    promise = _Later()
    promise.arguments = arguments
    return promise
