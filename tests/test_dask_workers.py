"""Which workers fit a run, what a cluster file may say, and what the command line refuses."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from click.testing import CliRunner

from judge.cli import main
from judge.engines.cluster_file import JOBS_S, ClusterError, SlurmJobs, load_slurm
from judge.engines.clusters import Cluster
from judge.engines.dask_worker import Facts, versions
from judge.engines.workers import Found, Workers
from judge.host import Host, Looked, Wish, look
from judge.yamlfile import CaseFileError
from tests.make_record import make_environment
from tests.trial import STARTER

WISH = Wish(device="cpu", sandbox="off", sms=None, slice_name=None)
WORKERS = Workers(Cluster(None, "", 0.0), WISH)
HERE = look(WISH)


def worker(host: Host | None = HERE, problem: str = "", **changed: str) -> Found:
    facts = Facts("token", "node1", versions() | changed, Looked(host, problem))
    return Found("tcp://10.0.0.1:4000", "tcp://10.0.0.1:4000", facts)


def on_gpu(uuid: str, **changed: object) -> Host:
    environment = replace(make_environment("NVIDIA H200"), **changed)
    return msgspec.structs.replace(HERE, gpu=uuid, environment=environment)


def test_a_worker_of_this_judge_on_such_a_machine_fits() -> None:
    assert WORKERS.problem(worker(), [worker()]) == ""
    assert WORKERS.problem(worker(on_gpu("a")), [worker(on_gpu("b"))]) == ""
    assert worker().name == "node1/4000"


@pytest.mark.parametrize("what", ["judge", "torch", "TileLang"])
def test_a_worker_of_other_versions_is_refused(what: str) -> None:
    problem = WORKERS.problem(worker(**{what: "0.0.1"}), [])
    assert problem.startswith(f"{what} 0.0.1 there, {versions()[what]} here")


def test_a_worker_that_cannot_do_what_is_asked_says_why() -> None:
    refused = worker(None, "--device cuda: this machine has no CUDA device; use --device cpu")
    assert WORKERS.problem(refused, []) == refused.facts.looked.problem


def test_unlike_devices_and_one_gpu_for_two_workers_are_refused() -> None:
    first = worker(on_gpu("a"))
    for other, wanted in (
        (on_gpu("b", device_name="NVIDIA A100"), "device NVIDIA A100 there, NVIDIA H200 at"),
        (on_gpu("b", sms=14), "SMs 14 there"),
        (on_gpu("a"), "the same GPU as node1/4000 (a)"),
    ):
        assert WORKERS.problem(worker(other), [first]).startswith(wanted)


def cluster_of(run: Callable[..., object]) -> Cluster:
    """A cluster of one worker, whose answers `run` gives."""
    workers = {"tcp://a": {"name": "a", "resources": {"GPU": 1.0}}}
    client = SimpleNamespace(
        status="running",
        scheduler=SimpleNamespace(identity=None),
        sync=lambda *values, **options: {"workers": workers},
        run=run,
    )
    return Cluster(client, "the scheduler", 60.0)


def test_a_worker_without_the_judge_or_without_an_answer_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing = Exception(repr(ModuleNotFoundError("No module named 'judge'")))
    cluster = cluster_of(lambda *values, **options: {"tcp://a": missing})
    with pytest.raises(ClusterError, match="worker a: cannot import this judge; put its folder on"):
        Workers(cluster, WISH).wait_for_first(lambda text: None)
    monkeypatch.setattr("judge.engines.workers._LOOK_S", 0.05)
    over = threading.Event()
    cluster = cluster_of(lambda *values, **options: over.wait())
    with pytest.raises(ClusterError, match=r"worker a: .*no answer within"):
        Workers(cluster, WISH).wait_for_first(lambda text: None)
    over.set()


def test_a_cluster_file_is_read_as_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(
        "slurm:\n  jobs: 4\n  queue: gpu\n  cores: 8\n  memory: 32GB\n  walltime: 01:30:00\n"
        "  job_extra_directives: ['--gres=gpu:1']\n"
        "  scheduler_options: {host: login1, port: 8786}\n"
    )
    assert load_slurm(file) == SlurmJobs(
        jobs=4,
        wait_s=JOBS_S,
        options={
            "queue": "gpu",
            "cores": 8,
            "memory": "32GB",
            "walltime": "01:30:00",
            "job_extra_directives": ["--gres=gpu:1"],
        },
        scheduler={"host": "login1", "port": 8786},
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("slurm: {cores: 8}", "1: slurm.memory: missing"),
        ("slurm: {cores: 8, memory: 1GB, que: x}", "1: slurm.que: unknown key; did you mean queue"),
        ("slurm: {cores: all, memory: 1GB}", "1: slurm.cores: 'all' is not a whole number"),
        (
            "slurm:\n  cores: 8\n  memory: 1GB\n  job_extra_directives: --gres=gpu:1",
            "4: slurm.job_extra_directives: must be a list of lines",
        ),
        ("pbs: {}", "1: pbs: unknown key; use one of slurm"),
    ],
)
def test_a_wrong_cluster_file_is_told_with_line_and_field(
    tmp_path: Path, text: str, complaint: str
) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    with pytest.raises(CaseFileError) as error:
        load_slurm(file)
    assert str(error.value).startswith(f"{file}:{complaint}")


def refusal(tmp_path: Path, *words: str) -> str:
    """The one line with which `grade` ends, with status 2, before it has graded anything."""
    run = ["grade", str(STARTER.parent), "--suite", "smoke", "--device", "cpu"]
    store = ["--store", str(tmp_path / "store.sqlite")]
    done = CliRunner().invoke(main, [*run, *store, *words])
    assert done.exit_code == 2
    assert done.stdout == ""
    return done.stderr.strip().splitlines()[-1]


def test_wrong_schedulers_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = refusal(tmp_path, "--scheduler", "tcp://127.0.0.1:9")
    assert said == "Error: --scheduler is for --engine dask; give that too"
    said = refusal(tmp_path, "--engine", "dask", "--scheduler", "somewhere")
    assert said.startswith("Error: --scheduler somewhere: give tcp://HOST:PORT")
    said = refusal(tmp_path, "--engine", "dask", "--scheduler", str(tmp_path / "none.yaml"))
    assert "none.yaml: cannot be read" in said
    pytest.importorskip("distributed", reason="Dask Distributed is not installed: .[cluster]")
    monkeypatch.setattr("judge.engines.clusters._CONNECT_S", 1.0)
    said = refusal(tmp_path, "--engine", "dask", "--scheduler", "tcp://127.0.0.1:9")
    assert said.startswith("Error: the scheduler tcp://127.0.0.1:9 cannot be used: ")


def test_tls_without_certificates_says_where_they_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: .[cluster]")
    dask = pytest.importorskip("dask")

    def connected(*values: object, **options: object) -> None:
        raise AssertionError("a client that cannot connect takes half a minute to end")

    monkeypatch.setattr(distributed, "Client", connected)
    words = ("--engine", "dask", "--scheduler", "tls://127.0.0.1:9")
    with dask.config.set({"distributed.comm.tls.ca-file": None}):
        said = refusal(tmp_path, *words)
    assert "no certificates are named; set distributed.comm.tls (docs/cluster.md)" in said
    none = str(tmp_path / "none.pem")
    named = {"ca-file": none, "client.cert": none, "client.key": none}
    with dask.config.set({f"distributed.comm.tls.{key}": path for key, path in named.items()}):
        said = refusal(tmp_path, *words)
    assert "a file that distributed.comm.tls names cannot be read: No such file" in said


def test_slurm_without_its_commands_says_where_to_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed: .[cluster]")
    monkeypatch.setenv("PATH", str(tmp_path))
    file = tmp_path / "cluster.yaml"
    file.write_text("slurm: {cores: 8, memory: 1GB}\n")
    said = refusal(tmp_path, "--engine", "dask", "--scheduler", str(file))
    assert said.endswith("; run it where jobs are submitted, or leave --scheduler out")


def test_without_the_extra_one_line_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *values: object, **options: object) -> object:
        if name == "distributed":
            raise ImportError(name)
        return real(name, *values, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    said = refusal(tmp_path, "--engine", "dask", "--baseline", "none")
    assert said == "Error: --engine dask needs Dask Distributed: pip install -e '.[cluster]'"
