"""Where a class is measured: options, and the lanes and compile workers that they make."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import click
import torch

from judge.bench import Plan
from judge.caches import TARGET_VARIABLES
from judge.case import HIDDEN_SUITE
from judge.commands.run_options import machine, say
from judge.engines.cluster_file import ClusterError
from judge.engines.clusters import Cluster, elsewhere, own_workers
from judge.engines.compile_ahead import CompileSetup, CompileStage
from judge.engines.dask_engine import DaskEngine
from judge.engines.devices import divided, lane_devices, own_cores, spare_cores
from judge.engines.engine import Engine, new_setup
from judge.engines.local import LaneDevice, LocalEngine
from judge.engines.workers import Workers
from judge.environment import installed_version
from judge.host import Wish
from judge.profiles import DEFAULT_PROFILE, PROFILES, TARGET, DeviceProfile

CORES_PER_COMPILER = 4
_HOPPER = (9, 0)

_OPTIONS = (
    click.option(
        "--engine",
        type=click.Choice(["local", "dask"]),
        default="local",
        help="local: this machine's devices. dask: Dask workers, of this machine where no "
        "--scheduler is given. Default: local.",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS|FILE.yaml",
        help="A Dask scheduler that runs, such as tls://host:8786, or a file that says how Slurm "
        "is asked for workers (docs/cluster.md).",
    ),
    click.option(
        "--jobs",
        type=click.IntRange(1, 256),
        metavar="N",
        help="At most N lanes and N compile workers. Default: a lane for each visible GPU, as many "
        f"workers as there are {CORES_PER_COMPILER} cores for. On a CPU: N lanes; default: one. "
        "With Slurm: N jobs.",
    ),
)


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say where a class is measured."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class EngineOptions:
    """The values of `engine_options`, as click hands them over."""

    engine: str
    scheduler: str | None
    jobs: int | None


@dataclass(frozen=True)
class Connection:
    """Workers elsewhere, the first of them found."""

    cluster: Cluster
    workers: Workers


@dataclass(frozen=True)
class Measuring:
    """What measures a class. lane_cores: how many each lane is pinned to, 0 for none."""

    plan: Plan
    engine: Engine
    stage: CompileStage | None
    lane_cores: list[int]


@contextmanager
def connected(options: EngineOptions, wish: Wish) -> Iterator[Connection | None]:
    """The workers that --scheduler names, once there is one; None where lanes are this machine's.

    Raises ClusterError, and CaseFileError for a cluster file.
    """
    if options.scheduler is None:
        yield None
        return
    if options.engine != "dask":
        raise ClusterError("--scheduler is for --engine dask; give that too")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with elsewhere(options.scheduler, options.jobs, say) as cluster:
        if options.scheduler.startswith("tcp://"):
            say("tcp:// asks nobody who they are: whoever reaches the scheduler runs code")
        workers = Workers(cluster, wish)
        workers.wait_for_first(say)
        yield Connection(cluster, workers)


@contextmanager
def measuring(
    plan: Plan,
    options: EngineOptions,
    device_option: str,
    connection: Connection | None,
    message: Callable[[str], None],
) -> Iterator[Measuring]:
    """Lanes, and where kernels are compiled before, ready for a class.

    message: told what takes long. Raises ClusterError, and what `machine` raises.
    """
    if connection is not None:
        # they may all be on one machine
        sharing = max(len(connection.workers.first), connection.cluster.expected)
        setup = new_setup(plan, elsewhere=True, sharing=sharing)
        engine = DaskEngine(connection.cluster, setup, connection.workers, options.jobs)
        yield Measuring(plan, engine, None, [0] * len(engine.lanes()))
        return
    lanes = lane_devices(plan.device, ":" not in device_option, options.jobs, say)
    with (
        compile_target(plan),
        machine(plan, message, hold=False) as ready,
        apart_from(lanes),
        ExitStack() as stack,
    ):
        setup = new_setup(ready, sharing=len(lanes))
        if options.engine == "local":
            engine = LocalEngine(setup, lanes)
        else:
            message("starting Dask workers")
            cluster = stack.enter_context(own_workers(lanes))
            workers = Workers(cluster, None)
            workers.wait_for_first(message)
            engine = DaskEngine(cluster, setup, workers)
        compilers = compile_stage(ready, lanes, options.jobs)
        message("")
        yield Measuring(ready, engine, compilers, [len(lane.cores) for lane in lanes])


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


def compile_stage(plan: Plan, lanes: list[LaneDevice], jobs: int | None) -> CompileStage | None:
    """Where kernels are compiled before a lane gets them; None where that would gain nothing.

    On a GPU machine that needs cores that no lane is pinned to, lest it disturb what is timed. On a
    CPU a single worker of low priority finds out which submissions do not compile. It gets no
    hidden case, of which nothing would be kept.
    """
    cases = [(suite, case) for suite, case in plan.cases if suite != HIDDEN_SUITE]
    if not cases or shutil.which("nvcc") is None or installed_version("tilelang") is None:
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
    setup = CompileSetup(cases, profile, plan.child.sandbox)
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
