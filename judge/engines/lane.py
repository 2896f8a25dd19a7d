"""A lane: one device, one bench, one submission after the other, and nothing but measuring."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import torch

from judge.audit import AuditSeeds
from judge.bench import Bench, Plan
from judge.caches import compile_judge_kernels
from judge.child.process import default_memory_limit
from judge.child.variables import followed_by_profiler
from judge.device import child_view, gpu_identity
from judge.engines.engine import AtCase, AtPhase, Began, Event, Finished, LaneError, Setup, Task
from judge.environment import capture
from judge.grading import Opened, grade, open_submission
from judge.record import CaseResult
from judge.sandbox.kinds import choose_sandbox
from judge.text import plain
from judge.threads import available_cores


class Lane:
    """Measures under one setup on the first device that this process sees; in its main thread.

    tell: takes what happens. upcoming: the next task if it is known already, without waiting; its
    submission's child is then started beside the one under way, where nothing is timed. Raises
    LaneError where this device would not measure what the setup's plan is about.
    """

    def __init__(
        self,
        setup: Setup,
        name: str,
        tell: Callable[[Event], None],
        upcoming: Callable[[], Task | None] = lambda: None,
    ) -> None:
        self._plan = adapted(setup)
        self._name = name
        self._tell = tell
        self._upcoming = upcoming
        self._task = 0
        self._ahead: tuple[Task, Opened] | None = None
        torch.set_num_threads(self._plan.child.threads)
        self._bench = Bench(self._plan, self, AuditSeeds(setup.secret), setup.sharing)
        self._bench.at_rest = self._at_rest

    def measure(self, task: Task) -> Finished:
        """Measure a submission. Raises KeyboardInterrupt where that ended it."""
        start = time.monotonic()
        self._task = task.number
        self._tell(Began(task.number, self._name))
        opened = self._opened(task)
        record, problem = None, ""
        try:
            plan = replace(self._plan, submission=task.submission)
            record = grade(plan, self, self._bench, opened, task.compile_errors)
        except Exception as error:
            problem = plain(f"the judge failed: {type(error).__name__}: {error}")
            self._bench.drop_children()
        if record is not None and record.interrupted and not self._bench.lost:
            raise KeyboardInterrupt
        seconds = round(time.monotonic() - start, 3)
        return Finished(task.number, self._name, record, problem, self._bench.lost, seconds)

    def close(self) -> None:
        """End all children at once: none holds anything that is still wanted."""
        if self._ahead is not None:
            self._ahead[1].session.drop_child()
            self._ahead[1].close()
            self._ahead = None
        self._bench.drop_children()
        self._bench.close()

    def case(self, number: int, total: int, name: str) -> None:
        """Case `number` of `total` begins."""
        self._tell(AtCase(self._task, number, total, name))

    def phase(self, phase: str) -> None:
        """A phase of the current case begins."""
        self._tell(AtPhase(self._task, phase))

    def done(self, result: CaseResult) -> None:
        """The current case is judged."""

    def _opened(self, task: Task) -> Opened | None:
        """The submission, if it is the one that was opened ahead."""
        if self._ahead is None:
            return None
        expected, opened = self._ahead
        self._ahead = None
        if expected.number == task.number:
            opened.session.hold(False)
            return opened
        opened.close()
        return None

    def _at_rest(self, rest: bool) -> None:
        """Let the next submission's child get ready, or stop it: something is about to be timed."""
        if self._ahead is not None:
            self._ahead[1].session.hold(not rest)
        elif rest and (task := self._upcoming()) is not None:
            with suppress(OSError):  # then it is opened when its turn has come
                self._ahead = task, open_submission(task.submission, self._bench)


def adapted(setup: Setup) -> Plan:
    """The setup's plan on this process's own device, cores and, elsewhere, sandbox and kernels.

    Raises LaneError where device, versions or sandbox are not the plan's, and what compiling the
    judge's kernels raises.
    """
    plan = setup.plan
    on_cuda = plan.device.type == "cuda"
    if on_cuda and not torch.cuda.is_available():
        raise LaneError("there is no CUDA device here")
    device = torch.device("cuda", 0) if on_cuda else plan.device
    environment = capture(device)
    if plan.child.sms is not None:
        environment = replace(environment, sms=plan.child.sms, sms_of=environment.sms)
    view, visible = child_view(device)
    child = replace(
        plan.child,
        device=view,
        visible_devices=visible,
        threads=available_cores(),
        memory_limit=default_memory_limit(),
        gpu=gpu_identity(device) if on_cuda else "",
    )
    if setup.elsewhere:
        mode = "auto" if child.sandbox.confined else "off"
        child = replace(child, sandbox=choose_sandbox(mode, followed_by_profiler()))
        kernels = compile_judge_kernels() if on_cuda else {}
        child = replace(child, judge_kernels=kernels)
    here = replace(plan, device=device, environment=environment, child=child)
    for what, wanted, found in zip(
        ("device", "SMs", "SMs of the device", "torch", "TileLang", "sandbox"),
        _conditions(plan),
        _conditions(here),
        strict=True,
    ):
        if wanted != found:
            raise LaneError(f"{what}: {found} here, {wanted} in this run")
    return here


def _conditions(plan: Plan) -> tuple[object, ...]:
    """What must be the same in all lanes, for their results to stand on one board."""
    machine = plan.environment
    return (
        *(machine.device_name, machine.sms, machine.sms_of, machine.torch, machine.tilelang),
        str(plan.child.sandbox.kind),
    )
