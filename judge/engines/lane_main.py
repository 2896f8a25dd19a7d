"""A lane's own process: tasks in, events out, until it is interrupted or its device is lost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch

from judge.caches import CompileError
from judge.device import gpu_identity
from judge.engines.engine import (
    Event,
    LaneError,
    Said,
    Setup,
    Task,
    decode_setup,
    decode_task,
    encode,
)
from judge.engines.lane import Lane
from judge.engines.process import Inbox, interruptible
from judge.gpu_lock import LockError, gpu_lock

UNAVAILABLE = 3
"""Exit status of a lane that is not to be had, which the last line that it said explains."""


def main(descriptor: int, name: str) -> None:
    """Serve the judge at the other end of the socket `descriptor`; the setup comes first."""
    inbox = Inbox(descriptor)
    interruptible(lambda: _serve(inbox, name))


def _serve(inbox: Inbox, name: str) -> None:
    def tell(event: Event) -> None:
        inbox.send(encode(event))

    def say(text: str) -> None:
        tell(Said(name, text))

    setup = decode_setup(inbox.next())
    try:
        with _device_held(setup, say):
            _measure_all(setup, name, inbox, tell)
    except (LaneError, LockError, CompileError) as error:
        say(str(error))
        raise SystemExit(UNAVAILABLE) from None


def _device_held(setup: Setup, say: Callable[[str], None]) -> AbstractContextManager[None]:
    """The lock of this process's GPU, if it is to measure on one."""
    if setup.plan.device.type != "cuda" or not torch.cuda.is_available():
        return nullcontext()
    return gpu_lock(gpu_identity(torch.device("cuda", 0)), say)


def _measure_all(setup: Setup, name: str, inbox: Inbox, tell: Callable[[Event], None]) -> None:
    waiting: list[Task] = []

    def upcoming() -> Task | None:
        if not waiting and (message := inbox.next_if_any()) is not None:
            waiting.append(decode_task(message))
        return waiting[0] if waiting else None

    lane = Lane(setup, name, tell, upcoming)
    try:
        while True:
            task = waiting.pop() if waiting else decode_task(inbox.next())
            finished = lane.measure(task)
            tell(finished)
            if finished.lost:
                return
    finally:
        lane.close()
