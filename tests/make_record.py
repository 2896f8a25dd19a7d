"""Made-up cases, suites and records for the tests of scoring, baselines and views."""

from __future__ import annotations

from collections.abc import Sequence

from judge.case import Case, Suite
from judge.record import (
    SCHEMA_VERSION,
    Baseline,
    CaseResult,
    Environment,
    Protocol,
    Record,
    Score,
    SubmissionInfo,
    TensorError,
)
from judge.scoring import result_score, score_run
from judge.timing import summarize
from judge.verdict import Rules, Verdict

PUBLIC = {
    "short_tail_state": ((1, 1025, 2, 8), 0.573952, 0.346048),
    "chain_equal": ((1, 8192, 4, 4), 3.999968, 0.497792),
    "parallel_gva": ((1, 2048, 4, 16), 1.899072, 0.491552),
    "deep_gva_state": ((1, 16384, 8, 32), 22.717567, 2.831104),
}
"""Some of the lab's public cases: B T Hq Hv, t60 and t100 in ms."""


def make_case(
    name: str,
    shape: tuple[int, int, int, int] = (1, 64, 2, 4),
    *,
    timed: bool = True,
    gate: str = "random_decay",
    gate_value: float | None = None,
    initial_state: float | None = None,
) -> Case:
    batch, tokens, qk_heads, v_heads = shape
    return Case(
        name=name,
        batch=batch,
        tokens=tokens,
        qk_heads=qk_heads,
        v_heads=v_heads,
        initial_state=initial_state,
        gate=gate,
        gate_value=gate_value,
        beta=None,
        equal_keys=False,
        zero_values=False,
        timed=timed,
        tolerance=5e-3,
    )


def make_suite(name: str, cases: Sequence[Case], weight: float | None = None) -> Suite:
    return Suite(name, weight, None, tuple(cases), f"cases/{name}.yaml", "ab" * 32)


def make_result(
    suite: str,
    case: Case,
    *,
    verdict: Verdict = Verdict.PASS,
    median_ms: float | None = None,
    score: float | None = None,
    detail: str = "",
) -> CaseResult:
    errors = [
        TensorError("output", 0.0009, 0.17, [0, 3, 1, 7], 0.0),
        TensorError("final_state", 0.004, 0.81, [0, 3, 1, 7], 0.0),
    ]
    timing = None
    if median_ms is not None:
        timing = summarize([median_ms * f for f in (0.99, 1.0, 1.0, 1.0, 1.02)])
    return CaseResult(
        suite=suite,
        case=case,
        verdict=verdict,
        detail=detail,
        errors=errors if verdict is Verdict.PASS else None,
        timing=timing,
        score=score,
        seconds={"prepare": 0.5, "first_call": 1.0, "run": 0.25},
    )


def make_environment(name: str = "NVIDIA H200", sms: int | None = 132) -> Environment:
    on_gpu = sms is not None
    return Environment(
        device="cuda:0" if on_gpu else "cpu",
        device_name=name,
        sms=sms,
        memory_gib=139.8,
        driver="570.86.15" if on_gpu else None,
        cuda="12.8" if on_gpu else None,
        torch="2.11.0",
        tilelang="0.1.15",
        python="3.11.7",
        platform="Linux-6.8.0-x86_64-with-glibc2.36",
        threads=16,
    )


def make_record(
    suites: Sequence[Suite],
    results: list[CaseResult],
    *,
    rules: Rules = Rules.OK,
    official: bool = True,
    gate_on: bool = True,
    notes: Sequence[str] = (),
    name: str = "v01_gemm",
) -> Record:
    score: Score = score_run(suites, results, gate_on=gate_on, rules=rules, official=official)
    return Record(
        schema_version=SCHEMA_VERSION,
        judge_version="0.1.0",
        created="2026-01-02T03:04:05Z",
        interrupted=False,
        submission=SubmissionInfo(
            name=name,
            path=f"submissions/{name}",
            digest="cd" * 32,
            rules=rules,
            rules_detail="" if rules is Rules.OK else "imports fla in helper.py",
            log="logs/20260102-030405-v01_gemm.log",
            log_cut=False,
        ),
        environment=make_environment(),
        protocol=Protocol(
            warmup=10,
            repetitions=100,
            seed=42,
            clock="cuda_events" if official else "host_clock",
            official=official,
            timeout_s=60.0,
            sandbox="bubblewrap",
        ),
        baseline=public_baseline(),
        results=results,
        score=score,
        notes=list(notes),
        seconds=38.2,
    )


def public_baseline() -> Baseline:
    return Baseline(
        source="checkpoints",
        name="h800-mig-1g.10gb",
        t100_ms={name: t100 for name, (_, _, t100) in PUBLIC.items()},
        t60_ms={name: t60 for name, (_, t60, _) in PUBLIC.items()},
        timings={},
    )


def public_record() -> Record:
    """A run of the public and correctness suites with a failure of each kind of column."""
    cases = [
        make_case(name, shape, initial_state=1.0 if name.endswith("_state") else None)
        for name, (shape, _, _) in PUBLIC.items()
    ]
    checks = [
        make_case("one_token", (1, 1, 2, 4), timed=False),
        make_case("constant_gate", (2, 129, 1, 8), timed=False, gate="constant", gate_value=-0.1),
        make_case("large_state", (1, 128, 3, 9), timed=False, initial_state=10.0),
    ]
    verdicts = (Verdict.PASS, Verdict.PASS, Verdict.COMPILE_ERROR, Verdict.PASS)
    medians = (0.067, 0.262, None, 2.409)
    details = ("", "", "nvcc: error: identifier 'foo' is undefined, in gdn_kernel.cu line 17", "")
    results = []
    for case, verdict, median, detail in zip(cases, verdicts, medians, details, strict=True):
        result = make_result("public", case, verdict=verdict, median_ms=median, detail=detail)
        result.score = result_score(case, verdict, result.timing, public_baseline())
        results.append(result)
    results += [make_result("correctness", case) for case in checks]
    suites = [make_suite("public", cases, 0.6), make_suite("correctness", checks)]
    return make_record(suites, results, notes=["TileLang 0.1.9 was meant, 0.1.15 is installed"])
