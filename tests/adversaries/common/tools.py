"""What several adversaries use: ways from the submission's code into its surroundings.

A copy lies beside each adversary when it is put on trial, next to right.py, a right
implementation for the device.
"""

from __future__ import annotations

import gc
import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, FunctionType, SimpleNamespace
from typing import Any

import torch

Argument = torch.Tensor | None
Result = tuple[torch.Tensor, torch.Tensor]


class DoorShut(Exception):
    """The judge left nothing to take: what a harmless end of a trick looks like."""


def frames() -> Iterator[FrameType]:
    """The frames that called the submission, innermost first."""
    here = sys._getframe(1)
    own = here.f_globals.get("__name__")
    while here is not None:
        if here.f_globals.get("__name__") not in (own, __name__):
            yield here
        here = here.f_back


def worker() -> Any:
    """The object that serves the judge's requests in this process. Raises DoorShut."""
    for frame in frames():
        candidate = frame.f_locals.get("self")
        if hasattr(candidate, "answer"):
            return candidate
    for candidate in gc.get_objects():
        if type(candidate).__name__ == "Worker":
            return candidate
    raise DoorShut("found no worker")


def silenced_worker() -> Any:
    """The worker, its guard replaced by one that never finds anything. Raises DoorShut."""
    server = worker()
    server._guard = SimpleNamespace(replaced=lambda *_: [])
    return server


def judge_functions() -> list[FunctionType]:
    """Functions of the judge's own modules that are alive in this process."""
    return [
        candidate
        for candidate in gc.get_objects()
        if isinstance(candidate, FunctionType)
        and str(candidate.__module__).partition(".")[0] in ("judge", "reference")
    ]


def judge_function(name: str) -> Callable[..., object]:
    """One function of the judge by its name. Raises DoorShut."""
    for function in judge_functions():
        if function.__name__ == name:
            return function
    raise DoorShut(f"found no function {name}")


def judge_class(name: str) -> type:
    """One class of the judge by its name. Raises DoorShut."""
    for candidate in gc.get_objects():
        if not isinstance(candidate, type) or candidate.__name__ != name:
            continue
        if candidate.__module__.partition(".")[0] == "judge":
            return candidate
    raise DoorShut(f"found no class {name}")


def channel_fds() -> list[int]:
    """File descriptors of this process's connected sockets: the judge's channel is among them."""
    sockets = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            if stat.S_ISSOCK(os.fstat(int(entry.name)).st_mode):
                with socket.socket(fileno=os.dup(int(entry.name))) as one:
                    one.getpeername()
                sockets.append(int(entry.name))
        except OSError:  # closed meanwhile, or one that CUDA keeps unconnected
            continue
    return sockets


def judge_root() -> str:
    """The folder that holds the judge: it stands on this process's command line."""
    return sys.argv[1]


def judge_cache() -> Path:
    """The judge's folder of caches, which a participant knows from runs of his own."""
    return Path(Path(__file__).with_name("judge_cache.txt").read_text())


def garbage_like(arguments: tuple[Argument, ...]) -> Result:
    """Tensors of the right form that hold zeros."""
    v = arguments[2]
    batch, _, heads, size = v.shape
    state = torch.zeros((batch, heads, size, size), dtype=torch.float32, device=v.device)
    return torch.zeros_like(v), state
