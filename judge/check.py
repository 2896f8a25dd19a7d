"""From a submission to a report without a GPU: dry calls, kernels, figures, verdict."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol as Interface

import torch

from judge import __version__, rules
from judge.caches import log_folder, submission_cache
from judge.case import HIDDEN_SUITE, Case
from judge.check_report import (
    CHECK_SCHEMA_VERSION,
    FAILURES,
    CheckedCase,
    CheckedSubmission,
    CheckReport,
    CheckVerdict,
    KernelReport,
    ReturnedTensor,
)
from judge.check_session import CheckFailure, CheckLimits, CheckSession
from judge.child.log import ChildLog
from judge.child.process import ChildOptions, default_memory_limit
from judge.child.protocol import Checked, Compiled
from judge.environment import installed_version, nvcc_version
from judge.kernel_report import Launched, failed_kernel, kernel_reports
from judge.profiles import TARGET, DeviceProfile
from judge.sandbox.kinds import Sandbox
from judge.submission import Submission
from judge.text import plain
from judge.threads import available_cores
from judge.verdict import Rules

_KINDS = {
    "": CheckVerdict.OK,
    "not_checked": CheckVerdict.NOT_CHECKED,
    "signature": CheckVerdict.SIGNATURE_ERROR,
    "compile": CheckVerdict.COMPILE_ERROR,
    "result": CheckVerdict.BAD_RESULT,
}
_TOO_LONG = CheckVerdict.TIMEOUT
_DETAIL = 600
_MAX_NAMES = 40


@dataclass(frozen=True)
class CheckPlan:
    """All that decides a check. cases: with their suite's name."""

    submission: Submission
    cases: Sequence[tuple[str, Case]]
    profile: DeviceProfile
    limits: CheckLimits
    sandbox: Sandbox


class CheckProgress(Interface):
    """What a check tells whoever watches it."""

    def message(self, message: str) -> None:
        """What is being done now."""


def check(plan: CheckPlan, progress: CheckProgress) -> CheckReport:
    """Check the submission. An interrupt ends it early; what is known by then is reported."""
    run = _Check(plan, progress)
    interrupted = False
    try:
        run.check_cases()
    except KeyboardInterrupt:
        interrupted = True
    finally:
        run.close()
    return run.report(interrupted)


_Form = tuple[int, int, int, int, bool]
"""What a dry call can see of a case: batch, tokens, heads, and whether there is a state."""


def _form(case: Case) -> _Form:
    has_state = case.initial_state is not None
    return case.batch, case.tokens, case.qk_heads, case.v_heads, has_state


class _Check:
    """One check under way."""

    def __init__(self, plan: CheckPlan, progress: CheckProgress) -> None:
        self._plan = plan
        self._progress = progress
        self._start = time.monotonic()
        self._created = datetime.now(UTC)
        self._cores = available_cores()
        self._rules = rules.scan_source(plan.submission)
        self._cases: list[CheckedCase] = []
        self._kernels: list[KernelReport] = []
        self._launched: dict[str, Launched] = {}
        self._compiled: dict[str, Compiled | CheckFailure] = {}
        self._by_form: dict[_Form, Checked | CheckFailure] = {}
        safe = re.sub(r"[^\w.-]", "_", plan.submission.name)[:60]
        name = f"{self._created:%Y%m%dT%H%M%S}-{os.getpid()}-check-{safe}.log"
        self._log = ChildLog(log_folder() / name)
        options = ChildOptions(
            device="cuda:0",
            visible_devices="",
            threads=self._cores,
            memory_limit=default_memory_limit(),
            profile=plan.profile,
            sandbox=plan.sandbox,
        )
        self._session = CheckSession(plan.submission, options, plan.limits, self._log)
        self._session.start()

    def check_cases(self) -> None:
        """Call every case and compile every kernel; the hidden cases come when all else is kept."""
        cases = self._plan.cases
        hidden = [one for one in cases if one[0] == HIDDEN_SUITE]
        self._call([one for one in cases if one not in hidden])
        self._compile_kernels()
        if hidden:
            self._session.seal_cache()
            self._call(hidden)
            self._compile_kernels()

    def _call(self, some: Sequence[tuple[str, Case]]) -> None:
        """Make the dry calls of some cases, and learn which kernels there are.

        Cases that look the same from outside share one call. Where nothing imports TileLang, the
        smallest case alone is called: there is no kernel to find in the others.
        """
        cases = self._plan.cases
        only = min((_form(case) for _, case in cases), key=lambda form: form[0] * form[1])
        by_form = self._by_form
        for number, (suite, case) in enumerate(some, start=len(self._cases) + 1):
            form = _form(case)
            self._progress.message(f"{number}/{len(cases)} {case.name} · dry call")
            if form not in by_form:
                self._log.heading(f"{suite}/{case.name}")
                if self._rules[0] is Rules.NO_TILELANG and form != only:
                    by_form[form] = CheckFailure(CheckVerdict.NOT_CHECKED, self._rules[1])
                else:
                    by_form[form] = self._called(case, by_form)
            self._cases.append(self._checked(suite, case, by_form[form]))

    def _compile_kernels(self) -> None:
        """Compile every kernel that is not yet, as many at a time as there are cores."""
        keys = [key for key in self._launched if key not in self._compiled]
        for number, key in enumerate(keys):
            launched = self._launched[key]
            self._progress.message(f"{number}/{len(keys)} kernels compiled · {launched.name}")
            try:
                done = self._session.compile(key, keys[number + 1 :], launched.case)
            except CheckFailure as failure:
                done = failure
            self._compiled[key] = done

    def close(self) -> None:
        """End the child and its log."""
        self._session.close()
        self._log.close()

    def report(self, interrupted: bool) -> CheckReport:
        """Everything in one report."""
        for key, done in self._compiled.items():
            self._kernels += self._reports(key, self._launched[key], done)
        for case in self._cases:
            self._apply_kernels(case)
        plan, (word, detail) = self._plan, self._rules
        return CheckReport(
            schema_version=CHECK_SCHEMA_VERSION,
            judge_version=__version__,
            created=self._created.isoformat(timespec="seconds"),
            interrupted=interrupted,
            submission=CheckedSubmission(
                name=plain(plan.submission.name),
                path=plain(plan.submission.path),
                digest=plan.submission.digest,
                rules=word,
                rules_detail=plain(detail),
                log=str(self._log.path),
            ),
            profile=plan.profile,
            tilelang=installed_version("tilelang"),
            torch=str(torch.__version__),
            nvcc=nvcc_version(),
            target=TARGET,
            cache=str(submission_cache(plan.submission.digest) / "tilelang"),
            kernels=self._kernels,
            cases=self._cases,
            verdict=self._verdict(interrupted),
            seconds=round(time.monotonic() - self._start, 3),
        )

    def _called(
        self, case: Case, by_form: dict[_Form, Checked | CheckFailure]
    ) -> Checked | CheckFailure:
        """The dry calls of a case; none where a case of no more tokens took too long."""
        for (_, tokens, *_), earlier in by_form.items():
            too_long = isinstance(earlier, CheckFailure) and earlier.verdict is _TOO_LONG
            if too_long and tokens <= case.tokens:
                return CheckFailure(_TOO_LONG, f"{tokens} tokens took too long already")
        try:
            return self._session.check(case)
        except CheckFailure as failure:
            return failure

    def _checked(self, suite: str, case: Case, checked: Checked | CheckFailure) -> CheckedCase:
        if isinstance(checked, CheckFailure):
            return CheckedCase(suite, case, checked.verdict, checked.detail, [], [], [])
        verdict = _KINDS.get(checked.kind, CheckVerdict.CRASH)
        for launch in checked.launches:
            launched = self._launched.setdefault(launch.kernel, Launched(launch.name, case, []))
            launched.grids.append((case.name, launch.grids))
        finished = verdict in (CheckVerdict.OK, CheckVerdict.BAD_RESULT)
        launches = len(checked.launches) if finished else 1  # an unfinished call proves nothing
        self._rules = rules.judge_loaded(self._rules, checked.forbidden, launches, on_cuda=True)
        return CheckedCase(
            suite=suite,
            case=case,
            verdict=verdict,
            detail=plain(checked.problem, _DETAIL),
            kernels=list(dict.fromkeys(launch.kernel for launch in checked.launches)),
            outputs=[ReturnedTensor(form.shape, plain(form.dtype)) for form in checked.outputs],
            unchecked=[plain(name) for name in checked.unchecked[:_MAX_NAMES]],
        )

    def _reports(
        self, key: str, launched: Launched, done: Compiled | CheckFailure
    ) -> list[KernelReport]:
        if isinstance(done, CheckFailure):
            return [failed_kernel(key, launched, self._plan.profile, done.verdict, done.detail)]
        if done.error or not done.figures:
            verdict = CheckVerdict.COMPILE_ERROR if done.error else CheckVerdict.NOT_CHECKED
            detail = done.error or "compiled by another backend than nvcc, which says nothing of it"
            return [failed_kernel(key, launched, self._plan.profile, verdict, detail)]
        return kernel_reports(key, launched, done, self._plan.profile)

    def _apply_kernels(self, case: CheckedCase) -> None:
        """A case whose kernel does not compile or cannot launch has failed too."""
        if case.verdict is not CheckVerdict.OK:
            return
        for kernel in self._kernels:
            in_case = kernel.kernel in case.kernels and case.case.name in kernel.cases
            if in_case and kernel.verdict in FAILURES:
                case.verdict, case.detail = kernel.verdict, f"{kernel.symbol}: {kernel.detail}"

    def _verdict(self, interrupted: bool) -> str:
        verdicts = [part.verdict for part in (*self._cases, *self._kernels)]
        if interrupted or self._rules[0] is not Rules.OK or FAILURES.intersection(verdicts):
            return "failed"
        warned = any(kernel.warnings for kernel in self._kernels)
        return "warnings" if warned or CheckVerdict.NOT_CHECKED in verdicts else "ok"
