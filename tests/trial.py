"""Putting small submissions on trial in the tests."""

from __future__ import annotations

import atexit
import tempfile
import textwrap
from dataclasses import fields
from functools import cache
from pathlib import Path

import torch

from judge.audit import AUDITS, NO_AUDITS, Answers, AuditSeeds, answers
from judge.bench import Plan
from judge.caches import ceilings_folder, compile_judge_kernels
from judge.case import Case
from judge.child.arguments import InputForm
from judge.child.log import ChildLog
from judge.child.process import ChildOptions
from judge.commands.run_options import RunOptions, choose_cases, make_plan
from judge.floor import floor_ms, known_ceilings
from judge.record import CaseResult
from judge.reference_run import null_submission
from judge.repetitions import Repetitions
from judge.sandbox.kinds import Sandbox, choose_sandbox
from judge.sandbox.watch import ResourceLimits
from judge.session import Session
from judge.strict_protocol import Terms
from judge.submission import Submission, find_submission
from judge.suites import load_suite
from judge.trial import Limits
from judge.witness import ALLOWANCES, Allowance

ROOT = Path(__file__).resolve().parents[1]
STARTER = ROOT / "submissions" / "starter" / "tilelang_fwd.py"
VERDICT_CASES = Path(__file__).with_name("verdict_cases.yaml")
SEED = 42
AUDIT_SEEDS = AuditSeeds()
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


def cpu_plan(cases_file: Path, **changed: object) -> Plan:
    """The plan that `grade` makes on a CPU for all cases of a file, with some options changed."""
    suites, cases = choose_cases([cases_file], (), (), ())
    options: dict[str, object] = dict.fromkeys(field.name for field in fields(RunOptions))
    options |= {"device": "cpu", "seed": SEED, "timeout": 30.0, "baseline": "auto"}
    options |= {"sandbox": "auto", "no_gate": False, **changed}
    return make_plan(RunOptions(**options), null_submission(), suites, cases)


@cache
def known_answers(case: Case, strict: bool, device: str) -> Answers:
    """What calls of a case are judged by, the same ones for every trial of a test session."""
    kind = torch.device(device)
    return answers(case, SEED, AUDITS[kind.type] if strict else NO_AUDITS, AUDIT_SEEDS, kind)


_null_case: dict[str, Case] = {}
"""The case that a device's null session is prepared for."""


@cache
def null_session(device: str) -> Session:
    """The submission that does nothing, ready for any case until the tests end."""
    log = ChildLog(Path(tempfile.mkdtemp()) / "null.txt")
    session = new_session(null_submission(), log, device=device)
    session.get_ready()
    atexit.register(session.close)
    return session


def terms_for(case: Case, device: str, allowance: Allowance | None = None) -> Terms:
    """What the times of a case are held against; to be called just before it is judged."""
    kind = torch.device(device)
    null = null_session(device)
    if _null_case.get(device) != case:
        null.prepare_to_repeat(case, SEED)
        _null_case[device] = case
    floor = None
    if kind.type == "cuda":
        floor = floor_ms(case, known_ceilings(ceilings_folder(), kind))
    on_cuda = kind.type == "cuda"
    allowed = allowance or ALLOWANCES[kind.type]
    return Terms(null, allowed, floor, rehearsed=on_cuda, looped=on_cuda)


def new_session(
    submission: Submission,
    log: ChildLog,
    *,
    limits: Limits = LIMITS,
    memory_limit: int = 12 * GIB,
    device: str = "cpu",
    strict: bool = True,
    sandbox: Sandbox | None = None,
    child_limits: ResourceLimits = CHILD_LIMITS,
    inputs: InputForm = InputForm.PREPARED,
) -> Session:
    """A session as a run makes it, its child on one thread. sandbox: None for the best there is."""
    options = ChildOptions(
        device=device,
        visible_devices="" if device == "cpu" else None,
        threads=1,
        memory_limit=memory_limit,
        judge_kernels={} if device == "cpu" else compile_judge_kernels(),
        sandbox=sandbox or choose_sandbox("auto"),
        limits=child_limits,
        inputs=inputs,
    )
    return Session(submission, options, limits, log, lambda phase: None, strict=strict)


def put_on_trial(
    path: Path,
    tmp_path: Path,
    cases: list[Case] | None = None,
    *,
    limits: Limits = LIMITS,
    memory_limit: int = 12 * GIB,
    count: Repetitions = COUNT,
    device: str = "cpu",
    strict: bool = False,
    sandbox: Sandbox | None = None,
    child_limits: ResourceLimits = CHILD_LIMITS,
) -> tuple[list[CaseResult], Session, ChildLog]:
    """Judge every case with one session, as a run does; the log stays open for reading.

    sandbox: None for the best there is.
    """
    log = ChildLog(tmp_path / "log.txt")
    session = new_session(
        find_submission(path),
        log,
        limits=limits,
        memory_limit=memory_limit,
        device=device,
        strict=strict,
        sandbox=sandbox,
        child_limits=child_limits,
    )
    try:
        results = [
            session.judge(
                "test",
                case,
                SEED,
                count,
                known_answers(case, strict, device),
                terms_for(case, device) if strict and case.timed else None,
            )
            for case in (cases or verdict_cases())
        ]
    finally:
        session.close()
    return results, session, log
