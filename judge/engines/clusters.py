"""Where Dask workers come from: this machine, a scheduler that runs, or jobs of a Slurm cluster."""

from __future__ import annotations

import logging
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.engines.cluster_file import ClusterError, SlurmJobs, load_slurm
from judge.engines.dask_worker import RESOURCE
from judge.engines.local import LaneDevice
from judge.text import plain

if TYPE_CHECKING:
    from distributed import Client, Security

_ROOT = Path(__file__).resolve().parents[2]
INSTALL = "pip install -e '.[cluster]'"
FILE_ENDINGS = (".yaml", ".yml")
SCHEMES = ("tcp://", "tls://")
_LOCALHOST = "127.0.0.1"
_CONNECT_S = 15.0
_OWN_WORKERS_S = 120.0


@dataclass(frozen=True)
class Cluster:
    """A connection to workers.

    name: for messages. wait_s: how long the first worker may take. cores: to which a worker's lane
    is pinned, by the worker's name. expected: how many workers were asked for.
    """

    client: Client
    name: str
    wait_s: float
    cores: Mapping[str, Sequence[int]] = field(default_factory=dict)
    expected: int = 1


@contextmanager
def own_workers(devices: Sequence[LaneDevice]) -> Iterator[Cluster]:
    """A scheduler and one worker for each device on this machine, ended afterwards.

    They speak TLS with a certificate of their own, as every account of the machine reaches the
    ports of localhost. Raises ClusterError.
    """
    distributed = _dask()
    import dask

    security = _own_certificate()
    common = {
        **{"protocol": "tls://", "host": _LOCALHOST, "security": security},
        **{"dashboard": False, "dashboard_address": None},
    }
    with ExitStack() as stack:
        # a worker that starts again after its end may take long to import what it needs
        patient = {"distributed.deploy.lost-worker-timeout": f"{_OWN_WORKERS_S} s"}
        stack.enter_context(dask.config.set(patient))
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="gdn-judge-dask-"))
        workers = {
            device.name: {
                "cls": distributed.Nanny,
                "options": {
                    **common,
                    "nthreads": 1,
                    "memory_limit": 0,
                    "resources": {RESOURCE: 1},
                    "env": _visible(device),
                    "local_directory": scratch,
                    "preload": ["judge.engines.dask_preload"],
                    "silence_logs": logging.CRITICAL,
                },
            }
            for device in devices
        }
        with _one_line("a scheduler on this machine"):
            cluster = stack.enter_context(
                distributed.SpecCluster(
                    workers,
                    {"cls": distributed.Scheduler, "options": common},
                    security=security,
                    silence_logs=logging.CRITICAL,
                )
            )
            client = stack.enter_context(distributed.Client(cluster, set_as_default=False))
        cores = {device.name: device.cores for device in devices}
        yield Cluster(client, "this machine", _OWN_WORKERS_S, cores)


def elsewhere(
    where: str, jobs: int | None, say: Callable[[str], None]
) -> AbstractContextManager[Cluster]:
    """The workers that `--scheduler` names. Raises ClusterError, and CaseFileError for a file."""
    if where.endswith(FILE_ENDINGS):
        return slurm_workers(load_slurm(Path(where)), jobs, say)
    if where.startswith(SCHEMES):
        return running_scheduler(where)
    wanted = "tcp://HOST:PORT, tls://HOST:PORT or a cluster file, which ends in .yaml"
    raise ClusterError(f"--scheduler {where}: give {wanted}")


@contextmanager
def running_scheduler(address: str) -> Iterator[Cluster]:
    """A scheduler that runs already; TLS files as Dask's own configuration names them.

    Raises ClusterError where it does not answer.
    """
    distributed = _dask()
    with ExitStack() as stack:
        with _one_line(f"the scheduler {address}"):
            if address.startswith("tls://"):
                _check_tls(distributed)
            client = stack.enter_context(
                distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
            )
        yield Cluster(client, f"the scheduler {address}", _CONNECT_S)


@contextmanager
def slurm_workers(
    wanted: SlurmJobs, jobs: int | None, say: Callable[[str], None]
) -> Iterator[Cluster]:
    """Workers in jobs of a Slurm cluster, one GPU and one worker each; cancelled afterwards.

    The scheduler runs in this process and speaks TLS, with a certificate that the jobs read from
    `shared_temp_directory`. jobs: in place of the file's number. Raises ClusterError.
    """
    distributed = _dask()
    try:
        from dask_jobqueue import SLURMCluster
    except ImportError:
        raise ClusterError(f"Slurm needs dask-jobqueue: {INSTALL}") from None
    if shutil.which("sbatch") is None:
        raise ClusterError(
            "Slurm is asked for, and there is no sbatch on this machine; run it where jobs are "
            "submitted, or leave --scheduler out"
        )
    options = {"shared_temp_directory": str(Path.cwd()), **wanted.options}
    prologue = [f"export PYTHONPATH={_ROOT}", *options.pop("job_script_prologue", [])]
    number = jobs or wanted.jobs
    with ExitStack() as stack:
        with _one_line("Slurm"), warnings.catch_warnings(action="ignore"):
            cluster = stack.enter_context(
                SLURMCluster(
                    processes=1,
                    worker_extra_args=["--resources", f"{RESOURCE}=1", "--no-dashboard"],
                    job_script_prologue=prologue,
                    scheduler_options={
                        **{"dashboard": False, "dashboard_address": None},
                        **wanted.scheduler,
                    },
                    security=_own_certificate(),
                    protocol="tls://",
                    silence_logs=logging.CRITICAL,
                    **options,
                )
            )
            client = stack.enter_context(distributed.Client(cluster, set_as_default=False))
            cluster.scale(jobs=number)
        say(f"Slurm is asked for {number} jobs; the scheduler is {cluster.scheduler_address}")
        yield Cluster(client, "Slurm", wanted.wait_s, expected=number)


def _visible(device: LaneDevice) -> dict[str, str]:
    shown = device.visible_devices
    return {} if shown is None else {"CUDA_VISIBLE_DEVICES": shown}


def _dask() -> Any:
    try:
        import distributed
    except ImportError:
        raise ClusterError(f"--engine dask needs Dask Distributed: {INSTALL}") from None
    for name in ("distributed", "distributed.client", "dask_jobqueue"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return distributed


def _check_tls(distributed: Any) -> None:
    """Raises ValueError where no certificates are named, or they cannot be read.

    A client that finds out by itself waits half a minute for its own end.
    """
    try:
        context = distributed.Security().get_connection_args("client")["ssl_context"]
    except OSError as error:
        what = "a file that distributed.comm.tls names cannot be read"
        raise ValueError(f"{what}: {error.strerror}") from None
    if context is None:
        raise ValueError("no certificates are named; set distributed.comm.tls (docs/cluster.md)")


def _own_certificate() -> Security:
    from distributed import Security

    try:
        return Security.temporary()
    except ImportError:
        raise ClusterError(f"TLS between the workers needs cryptography: {INSTALL}") from None


@contextmanager
def _one_line(what: str) -> Iterator[None]:
    """Turn what goes wrong while connecting into a ClusterError."""
    try:
        yield
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        raise ClusterError(plain(f"{what} cannot be used: {error}")) from None
