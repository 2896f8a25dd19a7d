"""Two judges on one GPU wait for each other."""

from __future__ import annotations

import multiprocessing
import os
import time
import uuid
from multiprocessing.connection import Connection

from judge.gpu_lock import gpu_lock


def _hold(gpu: str, channel: Connection) -> None:
    with gpu_lock(gpu, lambda text: None):
        channel.send("held")
        channel.recv()
        channel.send(time.monotonic())


def test_the_second_judge_says_that_it_waits_and_for_whom() -> None:
    gpu = f"test-{uuid.uuid4()}"
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    holder = context.Process(target=_hold, args=(gpu, theirs))
    holder.start()
    assert ours.recv() == "held"
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        ours.send("let go")

    with gpu_lock(gpu, say):
        acquired = time.monotonic()
    assert said == [f"waiting for another judge on this GPU (process {holder.pid})"]
    assert acquired >= ours.recv()
    holder.join()


def test_a_free_lock_is_taken_silently_and_again_after_release() -> None:
    gpu = f"test-{os.getpid()}"
    for _ in range(2):
        with gpu_lock(gpu, lambda text: (_ for _ in ()).throw(AssertionError(text))):
            pass
