"""A process that compiles the kernels of one submission after the other, as `check` does."""

from __future__ import annotations

import os
import time
import traceback

import msgspec

from judge.check import CheckPlan, check
from judge.check_report import CheckVerdict
from judge.check_session import CheckLimits
from judge.engines.compile_ahead import Compiled, CompileSetup, CompileTask
from judge.engines.process import Inbox, interruptible

_NICENESS = 10


class _Silent:
    """Progress that nobody watches."""

    def message(self, message: str) -> None:
        """What is being done now."""


def main(descriptor: int, name: str) -> None:
    """Serve the judge at the other end of the socket `descriptor`; the setup comes first."""
    os.nice(_NICENESS)  # where it shares cores with a lane, the lane goes first
    inbox = Inbox(descriptor)
    interruptible(lambda: _serve(inbox))


def _serve(inbox: Inbox) -> None:
    setup = msgspec.msgpack.decode(inbox.next(), type=CompileSetup)
    while True:
        task = msgspec.msgpack.decode(inbox.next(), type=CompileTask)
        start = time.monotonic()
        try:
            errors = _errors(setup, task)
        except Exception:
            traceback.print_exc()  # the lane will find out what there is to find
            errors = {}
        seconds = round(time.monotonic() - start, 3)
        inbox.send(msgspec.msgpack.encode(Compiled(task.number, errors, seconds)))


def _errors(setup: CompileSetup, task: CompileTask) -> dict[str, str]:
    """Compile into the submission's cache; by case, why its kernels do not compile."""
    plan = CheckPlan(task.submission, setup.cases, setup.profile, CheckLimits(), setup.sandbox)
    report = check(plan, _Silent())
    if report.interrupted:
        raise KeyboardInterrupt
    failed = [case for case in report.cases if case.verdict is CheckVerdict.COMPILE_ERROR]
    return {case.case.name: case.detail for case in failed}
