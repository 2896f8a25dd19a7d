"""When not to look for garbage: where much is made that stays, the search takes as long again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Look for no garbage in the block, which must be short."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@contextmanager
def set_aside() -> Iterator[None]:
    """Keep what is there already out of every search in the block."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
