"""What an engine is: tasks in, events out, all of them plain data that any process can be sent."""

from __future__ import annotations

from typing import Protocol as Interface

import msgspec
import torch

from judge.audit import AuditSeeds
from judge.bench import Plan
from judge.record import Record
from judge.submission import Submission


class LaneError(RuntimeError):
    """A lane that cannot measure under a plan; the text is one line that says why."""


class Setup(msgspec.Struct, frozen=True):
    """What every lane of a run is given once, before its first task.

    plan: whose submission means nothing. secret: from which all lanes draw the same audit seeds.
    elsewhere: whether the lane may be on another machine than the plan was made on, where it finds
    its own sandbox and compiles the judge's own kernels itself. sharing: for how many lanes the
    memory of its machine is.
    """

    plan: Plan
    secret: bytes
    elsewhere: bool = False
    sharing: int = 1


class Task(msgspec.Struct, frozen=True, tag=True):
    """A submission to measure. number: its own in the run.

    compile_errors: one line for each case, by name, whose kernels a compile stage found not to
    compile. They are its verdict where a lane without a GPU cannot run it.
    """

    number: int
    submission: Submission
    compile_errors: dict[str, str] = {}


class Began(msgspec.Struct, frozen=True, tag=True):
    """A lane has taken up a task."""

    task: int
    lane: str


class AtCase(msgspec.Struct, frozen=True, tag=True):
    """Case `number` of `total` begins."""

    task: int
    number: int
    total: int
    name: str


class AtPhase(msgspec.Struct, frozen=True, tag=True):
    """A phase of the current case begins."""

    task: int
    phase: str


class Finished(msgspec.Struct, frozen=True, tag=True):
    """A lane is done with a task.

    record: None where the judge itself failed, which `problem` tells in one line. lost: one line,
    why the lane's device answers no more, else empty. seconds: what the task took of the lane.
    """

    task: int
    lane: str
    record: Record | None
    problem: str
    lost: str
    seconds: float


class Died(msgspec.Struct, frozen=True, tag=True):
    """The lane ended while it was at a task, which may be submitted again. reason: one line."""

    task: int
    lane: str
    reason: str


class Said(msgspec.Struct, frozen=True, tag=True):
    """A line for whoever watches: what a lane waits for, or why it is not to be had."""

    lane: str
    text: str


Event = Began | AtCase | AtPhase | Finished | Died | Said


class Engine(Interface):
    """Lanes, wherever they are. Used by one thread."""

    def lanes(self) -> list[str]:
        """Names of the lanes that can still be had; none where the run cannot go on."""

    def room(self) -> int:
        """How many more tasks are wanted now, so that no lane has to wait for its next one."""

    def submit(self, task: Task) -> None:
        """Have a task measured, soon. Its number may be that of one that died."""

    def wait(self, timeout_s: float) -> list[Event]:
        """What has happened; waits for it, at most `timeout_s` seconds.

        For each task submitted there is one Finished or one Died, and a Began before it.
        """

    def close(self) -> None:
        """End all lanes at once; what they are at is dropped."""


def new_setup(plan: Plan, *, elsewhere: bool = False, sharing: int = 1) -> Setup:
    """The setup of a run, with seeds that nobody could foresee."""
    return Setup(plan, AuditSeeds().secret, elsewhere, sharing)


def encode(message: Setup | Task | Event) -> bytes:
    """A message as MessagePack."""
    return msgspec.msgpack.encode(message, enc_hook=_plain)


def decode_setup(data: bytes) -> Setup:
    """The setup that `encode` wrote. Raises msgspec.MsgspecError."""
    return msgspec.msgpack.decode(data, type=Setup, dec_hook=_rich)


def decode_task(data: bytes) -> Task:
    """The task that `encode` wrote. Raises msgspec.MsgspecError."""
    return msgspec.msgpack.decode(data, type=Task)


def decode_event(data: bytes) -> Event:
    """The event that `encode` wrote. Raises msgspec.MsgspecError."""
    return msgspec.msgpack.decode(data, type=Event)


def _plain(value: object) -> object:
    if isinstance(value, torch.device):
        return str(value)
    raise NotImplementedError(type(value))


def _rich(kind: type, value: object) -> object:
    if kind is torch.device:
        return torch.device(value)
    raise NotImplementedError(kind)
