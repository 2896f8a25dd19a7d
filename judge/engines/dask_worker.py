"""What a Dask worker is asked to do: say what it is, keep a lane alive, measure, let the lane go.

The functions here run inside a worker, which needs nothing but this judge to import. The lane is a
process below the worker's; it waits for the run's next submission, and ends with the worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import torch

from judge import __version__
from judge.engines.engine import (
    Died,
    Event,
    Finished,
    Task,
    decode_setup,
    decode_task,
    encode,
)
from judge.engines.local import LaneDevice, LocalEngine
from judge.engines.source import SOURCE_DIGEST
from judge.environment import installed_version
from judge.host import Looked, Wish
from judge.text import plain

RESOURCE = "GPU"
"""What a worker must have one of, by `--resources "GPU=1"`; a measurement takes it."""

_ROOT = Path(__file__).resolve().parents[2]
_LOOK = (
    "import sys; sys.path.insert(0, sys.argv[1]); from judge.host import main; main(sys.argv[2])"
)
_LOOK_LIMIT_S = 120.0
_IDLE_S = 300.0
"""A lane without work for so long is ended: the judge that it worked for may have been killed."""
_TICK_S = 0.2

_TOKEN = secrets.token_hex(8)


class Facts(msgspec.Struct, frozen=True):
    """What a worker says of itself. token: this very process's. looked: None where not asked."""

    token: str
    host_name: str
    versions: dict[str, str]
    looked: Looked | None


class Order(msgspec.Struct, frozen=True):
    """One task for a worker's lane.

    run: the judge's, by which a lane is kept. setup, task, ahead: encoded messages of the engine;
    ahead is the task that comes after this one, if there is one yet. token: of the worker that it
    is meant for. topic: where events are logged. lane: its name. cores: to which it is pinned.
    """

    run: str
    setup: bytes
    task: bytes
    ahead: bytes | None
    token: str
    topic: str
    lane: str
    cores: list[int]


class Outcome(msgspec.Struct, frozen=True):
    """What came of an order.

    event: an encoded Finished or Died; None where the lane could not begin. usable: whether the
    lane can be had for more. log: what the submission's log holds, which may lie on this host only.
    """

    event: bytes | None
    usable: bool
    log: bytes


class WrongWorkerError(RuntimeError):
    """An order has reached another process than the one that it was meant for."""


def versions() -> dict[str, str]:
    """What must be the same in a judge and its workers, by name."""
    return {
        "judge": f"{__version__} ({SOURCE_DIGEST[:12]})",
        "torch": str(torch.__version__),
        "TileLang": str(installed_version("tilelang")),
    }


async def describe(wish: bytes | None) -> bytes:
    """Facts, encoded. wish: an encoded Wish to look for, which takes some seconds."""
    looked = None
    if wish is not None:
        looked = await asyncio.to_thread(_look, msgspec.msgpack.decode(wish, type=Wish))
    return msgspec.msgpack.encode(Facts(_TOKEN, socket.gethostname(), versions(), looked))


def measure(order: bytes) -> bytes:
    """Have an Order's task measured by this worker's lane; an Outcome, both of them encoded.

    Raises WrongWorkerError.
    """
    from distributed import get_worker

    asked = msgspec.msgpack.decode(order, type=Order)
    if asked.token != _TOKEN:
        raise WrongWorkerError("the worker was replaced by another process")
    worker = get_worker()

    def tell(event: Event) -> None:
        worker.log_event(asked.topic, encode(event))

    return msgspec.msgpack.encode(_KEPT.measure(asked, tell))


class Call:
    """A call of `measure` that takes place where this is unpickled.

    Sent so, as bytes for pickle.loads, because Dask's scheduler unpickles what it is to have called
    and need not have this judge.
    """

    def __init__(self, order: Order) -> None:
        self._order = msgspec.msgpack.encode(order)

    def __reduce__(self) -> tuple[Callable[[bytes], bytes], tuple[bytes]]:
        return measure, (self._order,)


async def release(run: str) -> None:
    """End the lane of a run, whatever it is at."""
    await asyncio.to_thread(_KEPT.release, run)


def _look(wish: Wish) -> Looked:
    """Look in a process of its own."""
    command = [sys.executable, "-P", "-c", _LOOK, str(_ROOT), msgspec.json.encode(wish).decode()]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_LOOK_LIMIT_S
        )
        return msgspec.json.decode(done.stdout.strip().rpartition("\n")[2], type=Looked)
    except subprocess.TimeoutExpired:
        return Looked(None, f"did not say within {_LOOK_LIMIT_S:g} s what it has")
    except msgspec.MsgspecError:
        said = (done.stderr.strip() or done.stdout.strip()).rpartition("\n")[2]
        return Looked(None, plain(said or f"exit status {done.returncode}"))


@dataclass
class _Kept:
    """This worker's lane between tasks. One thread measures; others may release.

    sent: numbers of the tasks that the lane holds. unread: what it said after its last result.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    run: str = ""
    engine: LocalEngine | None = None
    sent: set[int] = field(default_factory=set)
    unread: deque[Event] = field(default_factory=deque)
    released: set[str] = field(default_factory=set)
    idle: threading.Timer | None = None

    def measure(self, order: Order, tell: Callable[[Event], None]) -> Outcome:
        with self.lock:
            self._stop_waiting()
            if self.engine is None or self.run != order.run:
                self._end()
                device = LaneDevice(order.lane, None, tuple(order.cores))
                self.engine = LocalEngine(decode_setup(order.setup), [device])
                self.run, self.sent, self.unread = order.run, set(), deque()
            task = decode_task(order.task)
            for one in (task, *([decode_task(order.ahead)] if order.ahead is not None else [])):
                self._send(one)
            outcome = self._result(task.number, tell)
            if outcome.usable and order.run not in self.released:
                self._wait_for_work()
            else:
                self._end()
            return outcome

    def release(self, run: str) -> None:
        self.released.add(run)
        with self.lock:
            if self.run == run:
                self._end()

    def _send(self, task: Task) -> None:
        if task.number not in self.sent:
            self.sent.add(task.number)
            self.engine.submit(task)

    def _result(self, number: int, tell: Callable[[Event], None]) -> Outcome:
        """Pass on what happens until the task is done with."""
        while self.run not in self.released:
            self.unread.extend(self.engine.wait(0.0 if self.unread else _TICK_S))
            while self.unread:
                event = self.unread.popleft()
                if not isinstance(event, Finished | Died):
                    tell(event)
                    continue
                self.sent.discard(event.task)
                if event.task == number:
                    return Outcome(encode(event), bool(self.engine.lanes()), _log_of(event))
            if not self.engine.lanes():
                break
        return Outcome(None, False, b"")

    def _wait_for_work(self) -> None:
        self.idle = threading.Timer(_IDLE_S, lambda: self._end_if_idle(timer))
        timer = self.idle
        timer.daemon = True
        timer.start()

    def _end_if_idle(self, timer: threading.Timer) -> None:
        with self.lock:
            if self.idle is timer:
                self._end()

    def _stop_waiting(self) -> None:
        if self.idle is not None:
            self.idle.cancel()
            self.idle = None

    def _end(self) -> None:
        self._stop_waiting()
        if self.engine is not None:
            self.engine.close()
            self.engine = None


def _log_of(event: Finished | Died) -> bytes:
    if isinstance(event, Died) or event.record is None:
        return b""
    with contextlib.suppress(OSError):
        return Path(event.record.submission.log).read_bytes()
    return b""


_KEPT = _Kept()
