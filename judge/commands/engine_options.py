"""Where a class is measured: options, and the lanes and compile workers that they make."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
import torch

from judge.bench import Plan
from judge.caches import TARGET_VARIABLES
from judge.commands.run_options import say
from judge.engines.compile_ahead import CompileSetup, CompileStage
from judge.engines.devices import divided, lane_devices, own_cores, spare_cores
from judge.engines.engine import Engine, new_setup
from judge.engines.local import LaneDevice, LocalEngine
from judge.environment import installed_version
from judge.profiles import DEFAULT_PROFILE, PROFILES, TARGET, DeviceProfile

CORES_PER_COMPILER = 4
_HOPPER = (9, 0)

_OPTIONS = (
    click.option(
        "--jobs",
        type=click.IntRange(1, 256),
        metavar="N",
        help="At most N lanes and N compile workers. Default: a lane for each visible GPU, as many "
        f"workers as there are {CORES_PER_COMPILER} cores for. On a CPU: N lanes; default: one.",
    ),
)


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say where a class is measured."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def run_lanes(plan: Plan, device_option: str, jobs: int | None) -> list[LaneDevice]:
    """The lanes of a run on this machine: of all visible GPUs unless --device names one."""
    return lane_devices(plan.device, ":" not in device_option, jobs, say)


@contextmanager
def compile_target(plan: Plan) -> Iterator[None]:
    """Compile for Hopper by name, where that is the device: what is compiled ahead is then found.

    TileLang's cache distinguishes a target that was named from one that it found by itself.
    """
    changed = [name for name in TARGET_VARIABLES if name not in os.environ]
    if not _is_hopper(plan.device):
        changed = []
    os.environ.update(dict.fromkeys(changed, TARGET))
    try:
        yield
    finally:
        for name in changed:
            os.environ.pop(name, None)


def local_engine(plan: Plan, lanes: list[LaneDevice]) -> Engine:
    """The engine of this machine."""
    return LocalEngine(new_setup(plan), lanes)


def compile_stage(plan: Plan, lanes: list[LaneDevice], jobs: int | None) -> CompileStage | None:
    """Where kernels are compiled before a lane gets them; None where that would gain nothing.

    On a GPU machine that needs cores that no lane is pinned to, lest it disturb what is timed. On a
    CPU a single worker of low priority finds out which submissions do not compile.
    """
    if shutil.which("nvcc") is None or installed_version("tilelang") is None:
        return None
    if plan.device.type == "cpu":
        cores, profile = [()], PROFILES[DEFAULT_PROFILE]
    else:
        named = {os.environ.get(name) for name in TARGET_VARIABLES}
        spare = spare_cores(lanes)
        if not spare or named != {TARGET}:
            return None
        workers = max(1, min(len(spare) // CORES_PER_COMPILER, jobs or len(spare)))
        cores, profile = divided(spare, workers), _profile(plan)
    setup = CompileSetup(list(plan.cases), profile, plan.child.sandbox)
    return CompileStage(setup, cores)


@contextmanager
def apart_from(lanes: list[LaneDevice]) -> Iterator[None]:
    """Keep this process off the cores to which lanes are pinned."""
    before = own_cores()
    if spare := spare_cores(lanes):
        os.sched_setaffinity(0, spare)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _is_hopper(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.get_device_capability(device) == _HOPPER


def _profile(plan: Plan) -> DeviceProfile:
    """The lanes' own device, as far as a submission that asks can see."""
    properties = torch.cuda.get_device_properties(plan.device)
    return DeviceProfile(
        name="lane",
        device_name=properties.name,
        sms=plan.environment.sms or properties.multi_processor_count,
        memory=properties.total_memory,
        l2_cache=properties.L2_cache_size,
    )
