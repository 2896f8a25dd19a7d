"""The engine of many machines: each Dask worker with the resource GPU keeps one lane.

This process decides which worker measures what, and sends a task to that worker alone; Dask moves
the bytes and says which workers are left. So a task is lost with its worker and with nothing else,
is sent again only by whoever submitted it, and no result of a lost worker is ever taken.
"""

from __future__ import annotations

import pickle
import queue
import secrets
import time
from collections import deque
from concurrent.futures import Future as Background
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from judge.caches import log_folder
from judge.engines.clusters import Cluster
from judge.engines.dask_worker import RESOURCE, Call, Order, Outcome, WrongWorkerError, release
from judge.engines.engine import (
    AtCase,
    AtPhase,
    Began,
    Died,
    Event,
    Finished,
    Said,
    Setup,
    Task,
    decode_event,
    encode,
)
from judge.engines.workers import Found, Workers, ask
from judge.text import plain

if TYPE_CHECKING:
    from distributed import Future

_REFRESH_S = 1.0
_TICK_S = 0.25
_RELEASE_S = 30.0
_LOST = "its worker is lost"
_SILENT = "the scheduler answers no more"
_NEXT = "the next worker"


@dataclass
class _Slot:
    """One worker and what is meant for it: at most the task under way and the next one."""

    worker: Found
    name: str
    tasks: deque[Task] = field(default_factory=deque)
    future: Future | None = None
    begun: bool = False


class DaskEngine:
    """Implements `Engine`. Workers that come later join, where they are like the others.

    workers: those of `cluster`, whose first ones have been found. most: how many may be used at a
    time, None for all.
    """

    def __init__(
        self, cluster: Cluster, setup: Setup, workers: Workers, most: int | None = None
    ) -> None:
        self._client = cluster.client
        self._cores = cluster.cores
        self._setup = encode(setup)
        self._run = secrets.token_hex(8)
        self._topic = f"gdn-judge-{self._run}"
        self._workers = workers
        self._most = most
        self._alone_since: float | None = None
        self._slots: dict[str, _Slot] = {}
        self._left_out: set[str] = set()
        self._waiting: deque[Task] = deque()
        self._events: list[Event] = []
        self._news: queue.SimpleQueue[Event | tuple[str, Future]] = queue.SimpleQueue()
        self._background = ThreadPoolExecutor(1, "gdn-judge-workers")
        self._asked: Background[list[Found]] | None = None
        self._refreshed = 0.0
        self._orders = 0
        self._client.subscribe_topic(self._topic, self._hear)
        for found in workers.first[:most]:
            self._slots[found.address] = _Slot(found, found.name)

    def lanes(self) -> list[str]:
        """Names of the workers that can still be had, one that is hoped for where all are lost."""
        names = [slot.name for slot in self._slots.values()]
        if not names and self._alone_since is not None:
            waited = time.monotonic() - self._alone_since
            return [_NEXT] if waited < self._workers.patience_s else []
        return names

    def room(self) -> int:
        """How many more tasks are wanted: each lane has one under way and the next one."""
        held = len(self._waiting) + sum(len(slot.tasks) for slot in self._slots.values())
        return max(0, 2 * len(self._slots) - held)

    def submit(self, task: Task) -> None:
        """Have a task measured by the worker that is free first."""
        self._waiting.append(task)

    def wait(self, timeout_s: float) -> list[Event]:
        """What has happened; waits for it, at most `timeout_s` seconds."""
        deadline = time.monotonic() + timeout_s
        while True:
            self._refresh()
            self._hand_out()
            left = deadline - time.monotonic()
            self._listen(min(_TICK_S, max(0.0, left)))
            if self._events or left <= 0:
                events, self._events = self._events, []
                return events

    def close(self) -> None:
        """End all lanes; what they are at is dropped."""
        self._background.shutdown(wait=False, cancel_futures=True)
        for slot in self._slots.values():
            if slot.future is not None:
                with suppress(Exception):  # the scheduler may be gone
                    slot.future.cancel()
        addresses = list(self._slots)
        self._slots.clear()
        if addresses and self._client.status == "running":
            with suppress(OSError, TimeoutError, ValueError):
                self._client.unsubscribe_topic(self._topic)
                ask(self._client, addresses, _RELEASE_S, release, self._run)

    def _refresh(self) -> None:
        """Notice workers that are gone, and look at new ones without waiting for them."""
        if time.monotonic() - self._refreshed < _REFRESH_S:
            return
        self._refreshed = time.monotonic()
        present = self._workers.present()
        if present is None and self._slots:
            self._events.append(Said("dask", _SILENT))
        for address, slot in list(self._slots.items()):
            if present is None:
                self._lose(slot, _SILENT)
            elif address not in present:
                self._lose(slot, _LOST)
        if present is None:
            self._alone_since = None  # nothing to hope for
            return
        self._greet()
        known = (*self._slots, *self._left_out)
        new = [address for address in present if address not in known]
        if new and self._asked is None and self._wanted():
            self._asked = self._background.submit(self._workers.look, new)

    def _greet(self) -> None:
        if self._asked is None or not self._asked.done():
            return
        asked, self._asked = self._asked, None
        for found in [] if asked.exception() else asked.result():
            if not self._wanted():
                return
            beside = [slot.worker for slot in self._slots.values()]
            problem = self._workers.problem(found, beside)
            if problem:
                self._left_out.add(found.address)
                self._events.append(Said(found.name, f"left out: {problem}"))
            else:
                self._slots[found.address] = _Slot(found, found.name)
                self._alone_since = None

    def _wanted(self) -> bool:
        return self._most is None or len(self._slots) < self._most

    def _hand_out(self) -> None:
        """Give idle lanes a task first, then those that are at their only one the next."""
        for held in range(2):
            for slot in self._slots.values():
                if self._waiting and len(slot.tasks) == held:
                    slot.tasks.append(self._waiting.popleft())
        for slot in self._slots.values():
            if slot.tasks and slot.future is None:
                self._order(slot)

    def _order(self, slot: _Slot) -> None:
        self._orders += 1
        order = Order(
            run=self._run,
            setup=self._setup,
            task=encode(slot.tasks[0]),
            ahead=encode(slot.tasks[1]) if len(slot.tasks) > 1 else None,
            token=slot.worker.facts.token,
            topic=self._topic,
            lane=slot.name,
            cores=list(self._cores.get(slot.worker.given_name, ())),
        )
        address = slot.worker.address
        slot.begun = False
        slot.future = self._client.submit(
            pickle.loads,
            pickle.dumps(Call(order)),
            key=f"gdn-judge-{self._run}-{self._orders}",
            workers=[address],
            allow_other_workers=False,
            resources={RESOURCE: 1},
            pure=False,
        )
        slot.future.add_done_callback(lambda future: self._news.put((address, future)))

    def _hear(self, message: tuple[float, bytes]) -> None:
        """Called by Dask's own thread."""
        self._news.put(decode_event(message[1]))

    def _listen(self, timeout_s: float) -> None:
        """Take in what has arrived; waits for the first of it."""
        try:
            news = self._news.get(timeout=timeout_s)
            while True:
                if isinstance(news, tuple):
                    self._ended(*news)
                else:
                    self._heard(news)
                news = self._news.get_nowait()
        except queue.Empty:
            pass

    def _heard(self, event: Event) -> None:
        """Pass on an event, if it is not about a task that has been taken from its lane since."""
        if isinstance(event, Began):
            for slot in self._slots.values():
                if slot.name == event.lane and slot.tasks and slot.tasks[0].number == event.task:
                    slot.begun = True
                    self._events.append(event)
        elif isinstance(event, AtCase | AtPhase):
            if any(s.begun and s.tasks[0].number == event.task for s in self._slots.values()):
                self._events.append(event)
        else:
            self._events.append(event)

    def _ended(self, address: str, future: Future) -> None:
        slot = self._slots.get(address)
        if slot is None or slot.future is not future:
            return
        if future.status != "finished":
            reason = _failure(future)
            self._lose(slot, reason or _LOST)
            if reason:  # one that is there and cannot do it would fail at the next task too
                self._events.append(Said(slot.name, f"left out: {reason}"))
                self._leave_out(address)
            return
        outcome = msgspec.msgpack.decode(future.result(), type=Outcome)
        slot.future = None
        if outcome.event is not None:
            slot.tasks.popleft()
            event = decode_event(outcome.event)
            self._begin(slot, event.task)
            if isinstance(event, Finished):
                event = _with_log(event, outcome.log)
            self._events.append(event)
            slot.begun = False
        if not outcome.usable:
            self._retire(slot)
            self._leave_out(address)

    def _lose(self, slot: _Slot, reason: str) -> None:
        """A worker is gone, or another process now: what it was at has died."""
        if slot.future is not None:
            slot.future.cancel()
            task = slot.tasks.popleft()
            self._begin(slot, task.number)
            self._events.append(Died(task.number, slot.name, reason))
        self._retire(slot)

    def _retire(self, slot: _Slot) -> None:
        """No more for this worker; what it has not begun goes to another one."""
        self._waiting.extendleft(reversed(slot.tasks))
        slot.tasks.clear()
        del self._slots[slot.worker.address]
        if not self._slots:
            self._alone_since = time.monotonic()

    def _leave_out(self, address: str) -> None:
        """Never again; where it was the last one, nobody is hoped for in its place."""
        self._left_out.add(address)
        if not self._slots:
            self._alone_since = None

    def _begin(self, slot: _Slot, number: int) -> None:
        """Say that a task had begun, where that was not heard."""
        if not slot.begun:
            self._events.append(Began(number, slot.name))


def _failure(future: Future) -> str:
    """One line: what a worker that is still there could not do; empty where it is lost."""
    if future.status != "error":
        return ""
    error = future.exception()
    # KilledWorker: of a scheduler that allows no worker to be lost
    if isinstance(error, WrongWorkerError) or type(error).__name__ == "KilledWorker":
        return ""
    return plain(f"its worker failed: {type(error).__name__}: {error}")


def _with_log(finished: Finished, log: bytes) -> Finished:
    """The record with its log on this machine, where the worker's file is not this machine's.

    A log is no result: where it cannot be written the record names the worker's own.
    """
    record = finished.record
    if record is None:
        return finished
    path = Path(record.submission.log)
    with suppress(OSError):
        if path.read_bytes() == log:
            return finished
    here = log_folder() / path.name
    try:
        here.write_bytes(log)
    except OSError:
        return finished
    submission = replace(record.submission, log=str(here))
    return msgspec.structs.replace(finished, record=replace(record, submission=submission))
