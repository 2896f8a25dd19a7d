"""The engine of one machine: a process for each lane, started when there is work for it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing.connection import wait

from judge.bench import log_path
from judge.engines.engine import (
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
from judge.engines.process import Worker

_MODULE = "judge.engines.lane_main"
_FRUITLESS_STARTS = 2
"""A lane that has ended as often without taking up a task is given up."""


@dataclass(frozen=True)
class LaneDevice:
    """What one lane holds.

    visible_devices: CUDA_VISIBLE_DEVICES that shows it nothing else. cores: to which it and its
    children are pinned; empty where there are too few to divide.
    """

    name: str
    visible_devices: str | None
    cores: tuple[int, ...] = ()


@dataclass
class _Slot:
    """One lane and what it was sent: at most the task under way and the next one."""

    device: LaneDevice
    worker: Worker | None = None
    tasks: deque[Task] = field(default_factory=deque)
    begun: bool = False
    fruitless: int = 0
    given_up: bool = False


class LocalEngine:
    """Implements `Engine`: a lane that ends is replaced, unless its device is lost."""

    def __init__(self, setup: Setup, devices: Sequence[LaneDevice]) -> None:
        self._setup = encode(setup)
        self._slots = [_Slot(device) for device in devices]
        self._waiting: deque[Task] = deque()
        self._events: list[Event] = []

    def lanes(self) -> list[str]:
        """Names of the lanes that can still be had."""
        return [slot.device.name for slot in self._usable()]

    def pids(self) -> list[int]:
        """Process ids of the lanes that run."""
        return [slot.worker.pid for slot in self._slots if slot.worker is not None]

    def room(self) -> int:
        """How many more tasks are wanted: each lane has one under way and the next one."""
        held = len(self._waiting) + sum(len(slot.tasks) for slot in self._usable())
        return max(0, 2 * len(self._usable()) - held)

    def submit(self, task: Task) -> None:
        """Have a task measured by the lane that is free first."""
        self._waiting.append(task)
        self._hand_out()

    def wait(self, timeout_s: float) -> list[Event]:
        """What has happened; waits for it, at most `timeout_s` seconds."""
        deadline = time.monotonic() + timeout_s
        while not self._events:
            left = deadline - time.monotonic()
            running = {s.worker.channel: s for s in self._slots if s.worker is not None}
            if not running:
                time.sleep(max(0.0, left))
                break
            for channel in wait(list(running), max(0.0, left)):
                self._receive(running[channel])
            if left <= 0:
                break
        events, self._events = self._events, []
        return events

    def close(self) -> None:
        """End all lanes; what they are at is dropped."""
        running = [slot for slot in self._slots if slot.worker is not None]
        for slot in running:
            slot.worker.ask_to_end()
        for slot in running:
            slot.worker.end()
            slot.worker = None

    def _usable(self) -> list[_Slot]:
        return [slot for slot in self._slots if not slot.given_up]

    def _hand_out(self) -> None:
        """Give idle lanes a task first, then those that are at their only one the next."""
        for held in range(2):
            for slot in self._usable():
                if self._waiting and len(slot.tasks) == held:
                    self._send(slot, self._waiting.popleft())

    def _send(self, slot: _Slot, task: Task) -> None:
        if slot.worker is None and not self._started(slot):
            self._waiting.appendleft(task)
            return
        slot.tasks.append(task)
        slot.worker.send(encode(task))  # one that nobody takes any more is found by `_receive`

    def _started(self, slot: _Slot) -> bool:
        """Start a lane's process; one that cannot be started, on a full disk say, is given up."""
        device = slot.device
        log = log_path(datetime.now(UTC), device.name)
        try:
            slot.worker = Worker(_MODULE, device.name, log, device.cores, device.visible_devices)
        except OSError as error:
            slot.given_up = True
            self._events.append(Said(device.name, f"the lane cannot be started: {error}"))
            return False
        slot.begun = False
        slot.worker.send(self._setup)
        return True

    def _receive(self, slot: _Slot) -> None:
        messages = slot.worker.receive()
        if messages is None:
            self._ended(slot)
        for message in messages or ():
            event = decode_event(message)
            if isinstance(event, Began):
                slot.begun, slot.fruitless = True, 0
            elif isinstance(event, Finished):
                slot.tasks.popleft()
                slot.begun = False
                slot.given_up = slot.given_up or bool(event.lost)
            self._events.append(event)
        self._hand_out()

    def _ended(self, slot: _Slot) -> None:
        """Report the task that the lane was at; what it had not begun goes to another one."""
        name = slot.device.name
        how = slot.worker.end()
        slot.worker = None
        if slot.begun:
            self._events.append(Died(slot.tasks.popleft().number, name, f"its lane {how}"))
            slot.begun = False
        elif not slot.given_up:
            slot.fruitless += 1
            if slot.fruitless == _FRUITLESS_STARTS:
                slot.given_up = True
                self._events.append(Said(name, f"the lane is given up: {how}"))
        self._waiting.extendleft(reversed(slot.tasks))
        slot.tasks.clear()
