"""Lanes: what they are sent, what they refuse, what stands still while they time, their ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from judge.engines.devices import divided, lane_devices, mig_instances, own_cores, spare_cores
from judge.engines.engine import (
    AtPhase,
    Began,
    Died,
    Event,
    Finished,
    LaneError,
    Setup,
    Task,
    decode_event,
    decode_setup,
    decode_task,
    encode,
    new_setup,
)
from judge.engines.lane import Lane, adapted
from judge.engines.local import LaneDevice, LocalEngine
from judge.engines.process import Worker
from judge.implementations import simple_implementation
from judge.sandbox.processes import children_of, descendants
from judge.submission import ENTRY, Submission, submission_from
from judge.verdict import Verdict
from tests.make_record import public_record
from tests.trial import ROOT, STARTER, VERDICT_CASES, cpu_plan

PLAIN = {"baseline": "none", "protocol": "lab"}
"""Options under which a run has no children but the submissions'."""


def right(name: str, remark: str = "") -> Submission:
    source = STARTER.read_text() + remark
    return submission_from(name, name, ENTRY, {ENTRY: source.encode()})


def sleeping(name: str) -> Submission:
    source = b"import time\n\ndef gdn_prefill_forward(*inputs):\n    time.sleep(999)\n"
    return submission_from(name, name, ENTRY, {ENTRY: source})


def test_what_lanes_are_sent_arrives_as_it_was() -> None:
    plan = cpu_plan(VERDICT_CASES)
    plan = replace(
        plan,
        public=[simple_implementation("cpu")],
        device=torch.device("cuda", 1),
        child=replace(plan.child, judge_kernels={"a/b.so": b"\0\xff"}, sms=14),
    )
    setup = new_setup(plan, elsewhere=True)
    assert len(setup.secret) == 16
    assert setup.secret != new_setup(plan).secret
    arrived = decode_setup(encode(setup))
    assert isinstance(arrived, Setup)
    assert arrived == setup
    task = Task(7, right("张三"), {"first": "error: [red]"})
    assert decode_task(encode(task)) == task
    for event in (
        Began(7, "cpu-1"),
        Finished(7, "cpu-1", public_record(), "", "wedged", 1.5),
        Died(7, "cpu-1", "ended by signal SIGKILL"),
    ):
        assert decode_event(encode(event)) == event


@pytest.mark.parametrize(
    ("what", "changed"),
    [("torch", {"torch": "1.0"}), ("device", {"device_name": "another"}), ("SMs", {"sms": 14})],
)
def test_a_lane_refuses_another_machine_s_plan(what: str, changed: dict[str, object]) -> None:
    plan = cpu_plan(VERDICT_CASES)
    assert adapted(new_setup(plan)).child.threads == len(own_cores())
    other = replace(plan, environment=replace(plan.environment, **changed))
    with pytest.raises(LaneError, match=f"^{what}: .* here, {next(iter(changed.values()))}"):
        adapted(new_setup(other))
    with pytest.raises(LaneError, match="no CUDA device"):
        adapted(new_setup(replace(plan, device=torch.device("cuda", 0))))


def test_cores_are_shared_out_without_overlap() -> None:
    assert divided(range(5), 2) == [(0, 1), (2, 3, 4)]
    assert divided(range(6), 3) == [(0, 1), (2, 3), (4, 5)]
    assert divided([3], 2) == [(), ()]


def test_lanes_of_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    cpu = torch.device("cpu")
    assert lane_devices(cpu, True, None, pytest.fail) == [LaneDevice("cpu-1", "")]
    two = lane_devices(cpu, True, 2, pytest.fail)
    assert [lane.cores for lane in two] == [(0, 1), (2, 3)]
    assert spare_cores(two) == []


@pytest.mark.parametrize(
    ("logical", "threads", "lane", "spare"),
    [
        (16, 2, (0, 1, 2, 3, 8, 9, 10, 11), [4, 5, 6, 7, 12, 13, 14, 15]),
        (16, 1, (0, 1, 2, 3), list(range(4, 16))),
        (8, 2, (0, 1, 2, 3), [4, 5, 6, 7]),  # of four physical ones none would be left
        (4, 1, (), []),
    ],
)
def test_a_lane_on_a_gpu_has_whole_physical_cores_where_there_are_enough(
    logical: int,
    threads: int,
    lane: tuple[int, ...],
    spare: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def groups(cores: list[int]) -> list[tuple[int, ...]]:
        physical = len(cores) // threads
        return [tuple(cores[n::physical]) for n in range(physical)]

    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(logical)))
    monkeypatch.setattr("judge.engines.devices.physical_cores", groups)
    monkeypatch.setattr("judge.engines.devices._name", lambda device: "GPU-1")
    lanes = lane_devices(torch.device("cuda", 0), False, None, pytest.fail)
    assert lanes == [LaneDevice("GPU-1", "GPU-1", lane)]
    assert spare_cores(lanes) == spare


class FakeNvml:
    """A management library that knows one divided GPU of three instances, and one whole GPU."""

    NVML_DEVICE_MIG_ENABLE = 1

    class NVMLError(Exception):
        pass

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(index=index)

    def nvmlDeviceGetMigMode(self, handle: SimpleNamespace) -> tuple[int, int]:  # noqa: N802
        if handle.index == 1:
            raise self.NVMLError("not supported")
        return 1, 1

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: SimpleNamespace) -> int:  # noqa: N802
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(  # noqa: N802
        self, handle: SimpleNamespace, number: int
    ) -> int:
        if number not in (0, 2, 5):
            raise self.NVMLError("not found")
        return number

    def nvmlDeviceGetUUID(self, number: int) -> bytes:  # noqa: N802
        return f"MIG-{number}".encode()


def test_every_mig_instance_is_found_or_the_ones_that_are_visible() -> None:
    nvml = FakeNvml()
    assert mig_instances(nvml, None) == ["MIG-0", "MIG-2", "MIG-5"]
    assert mig_instances(nvml, "MIG-5,MIG-0") == ["MIG-5", "MIG-0"]


def all_stopped(pid: int) -> bool:
    """Whether a process and all below it are stopped, as SIGSTOP does when each is next to run."""
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        if all(_state(one) in "TZ" for one in descendants([pid])):
            return True
        time.sleep(0.01)
    return False


def test_the_next_child_stands_still_while_something_is_timed() -> None:
    before = set(children_of(os.getpid()))
    seen: dict[str, list[tuple[int, int]]] = {}

    def look(event: Event) -> None:
        if isinstance(event, AtPhase) and event.task == 1:
            theirs = set(children_of(os.getpid())) - before
            still = sum(all_stopped(pid) == (event.phase == "run") for pid in theirs)
            seen.setdefault(event.phase, []).append((len(theirs), still))

    tasks = [Task(1, right("a")), Task(2, right("b", "x = 2\n"))]
    lane = Lane(new_setup(cpu_plan(VERDICT_CASES, **PLAIN)), "lane", look, lambda: tasks[1])
    try:
        first = lane.measure(tasks[0])
        second = lane.measure(tasks[1])
    finally:
        lane.close()
    assert [r.verdict for r in first.record.results] == [Verdict.PASS] * 2
    assert [r.verdict for r in second.record.results] == [Verdict.PASS] * 2
    assert second.record.submission.name == "b"
    # two cases; the second child is there from the first one's reference on
    assert seen["run"] == [(2, 1)] * 2  # one of two stands still
    assert seen["first call"] == [(2, 2)] * 2  # both go on
    assert set(children_of(os.getpid())) <= before


def test_a_lane_that_is_killed_is_replaced_and_says_what_it_was_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GDN_JUDGE_CACHE", str(tmp_path))
    (tmp_path / "logs").mkdir()
    engine = LocalEngine(new_setup(cpu_plan(VERDICT_CASES, **PLAIN)), [LaneDevice("cpu-1", "")])
    events: list[Event] = []
    try:
        assert engine.room() == 2
        engine.submit(Task(1, sleeping("a")))
        engine.submit(Task(2, right("b")))
        assert engine.room() == 0
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and not any(isinstance(e, Finished) for e in events):
            new = engine.wait(1.0)
            events += new
            at_work = any(isinstance(e, AtPhase) and e.phase == "first call" for e in new)
            if at_work and not any(isinstance(event, Died) for event in events):
                (victim,) = engine.pids()
                os.kill(victim, signal.SIGKILL)
        kinds = [(type(e), e.task) for e in events if isinstance(e, Began | Died | Finished)]
        assert kinds == [(Began, 1), (Died, 1), (Began, 2), (Finished, 2)]
        (died,) = [event for event in events if isinstance(event, Died)]
        assert died.reason.startswith("its lane ended by signal SIGKILL")
        assert (engine.lanes(), engine.room()) == (["cpu-1"], 2)
    finally:
        engine.close()
    assert engine.pids() == []


def test_a_lane_that_cannot_be_had_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GDN_JUDGE_CACHE", str(tmp_path))
    (tmp_path / "logs").mkdir()
    plan = cpu_plan(VERDICT_CASES, **PLAIN)
    plan = replace(plan, environment=replace(plan.environment, torch="1.0"))
    engine = LocalEngine(new_setup(plan), [LaneDevice("cpu-1", "")])
    said = []
    try:
        engine.submit(Task(1, right("a")))
        deadline = time.monotonic() + 300
        while engine.lanes() and time.monotonic() < deadline:
            said += [event.text for event in engine.wait(1.0)]
        said += [event.text for event in engine.wait(0.0)]
    finally:
        engine.close()
    assert said[0].startswith("torch: ")
    assert said[-1] == "the lane is given up: exit status 3"


KEEPER = """
import sys, time
from pathlib import Path
from judge.engines.process import Worker
worker = Worker("tests.lane_stand_in", "x", Path(sys.argv[1]))
while not worker.receive():
    time.sleep(0.01)
print(worker.pid, flush=True)
time.sleep(999)
"""


def test_a_worker_ends_with_whoever_started_it(tmp_path: Path) -> None:
    keeper = subprocess.Popen(
        [sys.executable, "-c", KEEPER, str(tmp_path / "log")], cwd=ROOT, stdout=subprocess.PIPE
    )
    pid = int(keeper.stdout.readline())
    assert Path(f"/proc/{pid}").exists()
    keeper.kill()
    keeper.wait()
    deadline = time.monotonic() + 30
    while _alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(pid)


def test_a_worker_that_is_ended_says_how(tmp_path: Path) -> None:
    worker = Worker("tests.lane_stand_in", "x", tmp_path / "log", cores=own_cores()[:1])
    while not (messages := worker.receive()):
        time.sleep(0.01)
    assert messages == [b"x on 1 cores"]
    assert worker.send(b"a" * 10**7)  # more than a socket holds; read all the same
    assert worker.end() == "exit status 0"
    assert not (tmp_path / "log").exists()
    failing = Worker("tests.no_such_module", "x", tmp_path / "log")
    while failing.receive() is not None:
        time.sleep(0.01)
    assert failing.end() == (
        "exit status 1: ModuleNotFoundError: No module named 'tests.no_such_module'"
    )


def _alive(pid: int) -> bool:
    return _state(pid) != "Z"


def _state(pid: int) -> str:
    """As proc(5) has it; that of an ended process where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_lanes_that_cannot_be_started_are_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GDN_JUDGE_CACHE", str(tmp_path))  # without a folder for logs
    devices = [LaneDevice("cpu-1", ""), LaneDevice("cpu-2", "")]
    engine = LocalEngine(new_setup(cpu_plan(VERDICT_CASES, **PLAIN)), devices)
    shutil.rmtree(tmp_path / "logs")
    engine.submit(Task(1, right("a")))
    said = [event.text for event in engine.wait(0.0)]
    engine.close()
    assert engine.lanes() == []
    assert len(said) == 2
    assert all("cannot be started: [Errno 2] No such file" in text for text in said)


def test_a_worker_whose_log_was_cleared_away_ends_all_the_same(tmp_path: Path) -> None:
    worker = Worker("tests.lane_stand_in", "x", tmp_path / "log")
    while not worker.receive():
        time.sleep(0.01)
    (tmp_path / "log").unlink()
    assert worker.end() == "exit status 0"
