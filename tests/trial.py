"""Putting small submissions on trial in the tests."""

from __future__ import annotations

import textwrap
from pathlib import Path

import torch

from judge.caches import compile_judge_kernels
from judge.case import Case
from judge.child.log import ChildLog
from judge.child.process import ChildOptions
from judge.record import CaseResult
from judge.reference_run import expected_result
from judge.sandbox.kinds import Sandbox, choose_sandbox
from judge.sandbox.watch import ResourceLimits
from judge.session import Limits, Repetitions, Session
from judge.submission import find_submission
from judge.suites import load_suite

ROOT = Path(__file__).resolve().parents[1]
STARTER = ROOT / "submissions" / "starter" / "tilelang_fwd.py"
VERDICT_CASES = Path(__file__).with_name("verdict_cases.yaml")
SEED = 42
COUNT = Repetitions(warmup=1, repetitions=2)
LIMITS = Limits()
CHILD_LIMITS = ResourceLimits()
GIB = 2**30


def write_submission(folder: Path, body: str) -> Path:
    """A participant's folder: `body` as tilelang_fwd.py, a right implementation as right.py.

    `body` may use `right(...)`, which is that implementation, and `first_case(q)`, which tells
    the first of the verdict cases from the second.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "right.py").write_text(STARTER.read_text())
    prelude = """
        import torch
        from right import gdn_prefill_forward as right

        def first_case(q):
            return q.shape[1] == 65
    """
    source = textwrap.dedent(prelude) + textwrap.dedent(body)
    (folder / "tilelang_fwd.py").write_text(source)
    return folder


def verdict_cases() -> list[Case]:
    """Two small timed cases, of 65 and of 64 tokens."""
    return list(load_suite(VERDICT_CASES).cases)


def put_on_trial(
    path: Path,
    tmp_path: Path,
    cases: list[Case] | None = None,
    *,
    limits: Limits = LIMITS,
    memory_limit: int = 12 * GIB,
    count: Repetitions = COUNT,
    device: str = "cpu",
    sandbox: Sandbox | None = None,
    child_limits: ResourceLimits = CHILD_LIMITS,
) -> tuple[list[CaseResult], Session, ChildLog]:
    """Judge every case with one session, as a run does; the log stays open for reading.

    sandbox: None for the best there is.
    """
    log = ChildLog(tmp_path / "log.txt")
    options = ChildOptions(
        device=device,
        visible_devices="" if device == "cpu" else None,
        threads=1,
        memory_limit=memory_limit,
        judge_kernels={} if device == "cpu" else compile_judge_kernels(),
        sandbox=sandbox or choose_sandbox("auto"),
        limits=child_limits,
    )
    session = Session(find_submission(path), options, limits, log, lambda phase: None)
    try:
        results = [
            session.judge(
                "test", case, SEED, count, expected_result(case, SEED, torch.device(device))
            )
            for case in (cases or verdict_cases())
        ]
    finally:
        session.close()
    return results, session, log
