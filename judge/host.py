"""The machine that measures, as far as a plan depends on it: this one, or one that tells of itself.

    python -c "from judge.host import main; main(…)"

runs `look` in a process of its own, so that whoever asks holds no CUDA context afterwards.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import msgspec

from judge.checkpoints import BaselineError, CheckpointFile, load_checkpoints
from judge.child.variables import followed_by_profiler
from judge.device import DeviceError, choose_device, gpu_identity
from judge.environment import capture
from judge.implementations import Implementation, public_implementations
from judge.record import Environment
from judge.sandbox.kinds import Sandbox, SandboxError, choose_sandbox
from judge.slices import Slice, choose_slice
from judge.sm_budget import BudgetError, check_budget

CHECKPOINTS = Path(__file__).resolve().parents[1] / "cases" / "checkpoints"
"""Folder of the checkpoint files of this judge."""


class Wish(msgspec.Struct, frozen=True):
    """What a run asks of the machine that measures: the values of the options of these names."""

    device: str
    sandbox: str
    sms: int | None
    slice_name: str | None


class Host(msgspec.Struct, frozen=True):
    """What that machine has.

    device: as torch calls it there. gpu: its UUID, empty on a CPU. environment: with the SM budget
    in place of the device's SMs where there is one. public: the implementations installed there.
    """

    device: str
    gpu: str
    environment: Environment
    sandbox: Sandbox
    public: list[Implementation]


class Looked(msgspec.Struct, frozen=True):
    """A host, or one line that says why the wish cannot be met there."""

    host: Host | None
    problem: str = ""


def look(wish: Wish) -> Host:
    """What this machine has. Raises DeviceError, BudgetError, SandboxError, BaselineError."""
    device = choose_device(wish.device)
    environment = capture(device)
    predicted = predicted_slice(wish.slice_name, environment.device_name)
    sms = predicted[0].sms if predicted else wish.sms
    if sms is not None:
        if followed_by_profiler():
            raise BudgetError(f"--sms {sms}: not under ncu or nsys, which run a kernel at a time")
        check_budget(device, sms)
        environment = replace(environment, sms=sms, sms_of=environment.sms)
    on_cuda = device.type == "cuda"
    return Host(
        device=str(device),
        gpu=gpu_identity(device) if on_cuda else "",
        environment=environment,
        sandbox=choose_sandbox(wish.sandbox, followed_by_profiler()),
        public=public_implementations() if on_cuda else [],
    )


def predicted_slice(name: str | None, device_name: str) -> tuple[Slice, CheckpointFile] | None:
    """A slice to predict and its checkpoints. Raises BudgetError, BaselineError."""
    if name is None:
        return None
    chosen = choose_slice(name, device_name)
    return chosen, load_checkpoints(CHECKPOINTS / chosen.checkpoints)


def main(wish: str) -> None:
    """Write a Looked for a Wish, both as JSON, as the last line of standard output."""
    try:
        looked = Looked(look(msgspec.json.decode(wish, type=Wish)))
    except (DeviceError, BudgetError, SandboxError, BaselineError) as error:
        looked = Looked(None, str(error))
    sys.stdout.write("\n" + msgspec.json.encode(looked).decode() + "\n")
