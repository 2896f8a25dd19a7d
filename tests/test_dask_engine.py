"""The Dask engine: workers of this machine that are killed, interrupted, refused; and Slurm's."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from judge.class_run import ClassRun, State, grade_class
from judge.engines.cluster_file import ClusterError
from judge.engines.clusters import Cluster, own_workers
from judge.engines.dask_engine import DaskEngine
from judge.engines.engine import new_setup
from judge.engines.local import LaneDevice
from judge.engines.workers import Workers
from judge.home import CACHE_VARIABLE
from judge.run_log import RunLog
from judge.sandbox.processes import descendants
from judge.sources import Listed
from judge.store.store import Store
from judge.submission import ENTRY
from judge.uploads import find_uploads
from tests.trial import ROOT, STARTER, cpu_plan

pytest.importorskip("distributed", reason="Dask Distributed is not installed: .[cluster]")

NAMES = ("ann", "bo", "cy", "dan", "张三")
SUITE = """
suite: small
tolerance: 5e-3
cases:
  - {name: timed, batch: 1, tokens: 65, qk_heads: 1, v_heads: 2, initial_state: 1}
"""
PLAIN = ("--baseline", "none", "--protocol", "lab", "--device", "cpu")
"""Options under which a run has no children but the submissions'."""
DEADLINE_S = 300.0


def prepare(folder: Path) -> None:
    """Uploads that are right, each a little different, and a suite of one small case."""
    (folder / "suite.yaml").write_text(SUITE)
    for name in NAMES:
        path = folder / "in" / name / ENTRY
        path.parent.mkdir(parents=True)
        path.write_text(f"{STARTER.read_text()}\nWHO = {name!r}\n")


class Killer:
    """Progress of a run that kills the worker which first begins a case, at that case."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.killed = ""

    def case(self, lane: str, number: int, total: int, name: str) -> None:
        if self.killed:
            return
        self.killed = lane
        names = {
            address: worker["name"]
            for address, worker in self._cluster.client.scheduler_info()["workers"].items()
        }
        for address, pid in self._cluster.client.run(os.getpid).items():
            if names[address] == lane:
                os.kill(pid, signal.SIGKILL)

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *values: None


def test_a_killed_workers_submission_is_graded_elsewhere_and_each_is_recorded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    prepare(tmp_path)
    plan = cpu_plan(tmp_path / "suite.yaml", baseline="none", protocol="lab")
    log = tmp_path / "runs.jsonl"
    with own_workers([LaneDevice("one", ""), LaneDevice("two", "")]) as cluster:
        workers = Workers(cluster, None)
        workers.wait_for_first(lambda text: None)
        assert sorted(found.name for found in workers.first) == ["one", "two"]
        progress = Killer(cluster)
        with Store(tmp_path / "store.sqlite") as store:
            run = ClassRun(
                plan,
                DaskEngine(cluster, new_setup(plan), workers),
                None,
                store,
                None,
                progress,
                RunLog(log),
                fresh=False,
            )
            ended = grade_class(run, Listed(find_uploads(tmp_path / "in")))
            recorded = Counter(graded.participant for graded in store.results())
            count = store.count()
    assert not ended.lost
    assert not ended.interrupted
    assert {outcome.state for outcome in ended.outcomes} == {State.GRADED}
    assert {r.verdict.value for o in ended.outcomes for r in o.record.results} == {"PASS"}
    assert recorded == Counter(NAMES)
    assert count == len(NAMES)
    uploads = [line for line in map(json.loads, log.open()) if line["event"] == "upload"]
    deaths = Counter(line["lane_deaths"] for line in uploads)
    assert deaths == {0: len(NAMES) - 1, 1: 1}
    assert progress.killed in ("one", "two")


def test_ctrl_c_ends_workers_and_lanes_and_keeps_what_is_finished(tmp_path: Path) -> None:
    prepare(tmp_path)
    process = grade(tmp_path, "--engine", "dask", "--jobs", "2")
    text = read_until(process, b": graded")
    processes = descendants([process.pid])
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    rest, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors.decode()
    assert b"Traceback" not in errors
    # multiprocessing's resource tracker ends by itself once those that it serves are gone
    until = time.monotonic() + 10
    while any(alive(pid) for pid in processes) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [pid for pid in processes if alive(pid)]
    told = {line.split(b" ")[1].rstrip(b":").decode() for line in (text + rest).splitlines()}
    with Store(tmp_path / "store.sqlite") as store:
        recorded = Counter(graded.participant for graded in store.results())
    assert recorded == Counter(told)
    assert 1 <= len(told) < len(NAMES)


@pytest.mark.skipif(
    shutil.which("sinfo") is None
    or subprocess.run(["sinfo"], capture_output=True, check=False, timeout=30).returncode != 0,
    reason="no Slurm answers to sinfo (scripts/install_slurm.py starts one)",
)
def test_two_jobs_of_slurm_grade_a_class(tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue")
    prepare(tmp_path)
    (tmp_path / "cluster.yaml").write_text(
        "slurm:\n  jobs: 2\n  cores: 1\n  memory: 4GB\n  walltime: 00:20:00\n"
        f"  shared_temp_directory: {tmp_path}\n  log_directory: {tmp_path}\n"
        "  scheduler_options: {host: 127.0.0.1}\n"
    )
    process = grade(tmp_path, "--engine", "dask", "--scheduler", str(tmp_path / "cluster.yaml"))
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors.decode()
    assert output.count(b": graded; 1 PASS") == len(NAMES)
    with Store(tmp_path / "store.sqlite") as store:
        assert Counter(g.participant for g in store.results()) == Counter(NAMES)
        logs = [Path(g.record.submission.log) for g in store.results()]
    assert all(log.is_file() for log in logs)
    queued = subprocess.run(["squeue", "--noheader"], capture_output=True, check=True).stdout
    assert not queued.strip()


def grade(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """Start `run.py grade` as the leader of a process group."""
    files = ["--cases", str(folder / "suite.yaml"), "--store", str(folder / "store.sqlite")]
    return subprocess.Popen(
        [sys.executable, "run.py", "grade", str(folder / "in"), *files, *PLAIN, *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {CACHE_VARIABLE: str(folder / "cache")},
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def read_until(process: subprocess.Popen[bytes], wanted: bytes) -> bytes:
    """What a process prints until it has printed something."""
    text = b""
    deadline = time.monotonic() + DEADLINE_S
    while wanted not in text and time.monotonic() < deadline:
        if select.select([process.stdout], [], [], 1.0)[0]:
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            assert chunk, process.stderr.read().decode()
            text += chunk
    return text


def alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be collected does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def scheduler_with(workers: dict[str, dict]) -> Cluster:
    """A cluster whose scheduler says that it has these workers."""
    client = SimpleNamespace(
        status="running",
        scheduler=SimpleNamespace(identity=None),
        sync=lambda *values, **options: {"workers": workers},
    )
    return Cluster(client, "the scheduler", wait_s=0.0)


def test_workers_without_the_resource_are_refused_by_name_of_the_option() -> None:
    plain_worker = {"name": "a", "resources": {}}
    workers = Workers(scheduler_with({"tcp://a": plain_worker, "tcp://b": plain_worker}), None)
    with pytest.raises(ClusterError, match=r'none of the 2 workers .* --resources "GPU=1"'):
        workers.wait_for_first(lambda text: None)


def test_a_scheduler_to_which_nobody_comes_is_waited_for_and_no_longer() -> None:
    with pytest.raises(ClusterError, match="no worker of the scheduler has come within 0 s"):
        Workers(scheduler_with({}), None).wait_for_first(lambda text: None)
