"""PyTorch's own profiler around one case, where neither ncu nor nsys is installed."""

from __future__ import annotations

from collections.abc import Callable

import torch

from judge.audit import NO_AUDITS, AuditSeeds, answers
from judge.case import Case
from judge.child.errors import ChildError
from judge.child.log import ChildLog
from judge.child.process import ChildOptions
from judge.profiling.commands import ProfilerError
from judge.profiling.report import TimeRow, time_rows
from judge.record import CaseResult
from judge.repetitions import Repetitions
from judge.session import Session
from judge.submission import Submission
from judge.trial import Limits
from judge.verdict import Verdict

_COUNT = Repetitions(warmup=1, repetitions=1)


def run_torch(
    submission: Submission,
    suite: str,
    case: Case,
    *,
    device: torch.device,
    child: ChildOptions,
    seed: int,
    calls: int,
    log: ChildLog,
    progress: Callable[[str], None],
) -> tuple[CaseResult, list[TimeRow]]:
    """Judge the case by the lab's protocol, then profile `calls` more calls where it passed.

    Raises ProfilerError where the submission fails in the profiled calls.
    """
    session = Session(submission, child, Limits(), log, progress, strict=False)
    session.start()
    try:
        progress("reference")
        known = answers(case, seed, NO_AUDITS, AuditSeeds(), device)
        result = session.judge(suite, case, seed, _COUNT, known)
        if result.verdict is not Verdict.PASS:
            return result, []
        return result, time_rows(session.profile(calls).rows)
    except ChildError as error:
        raise ProfilerError(f"{case.name} passed, but not under the profiler: {error}") from None
    finally:
        session.close()
