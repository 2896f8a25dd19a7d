"""Made-up records of the ladder: every median follows from version, case and SMs by one formula."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec

from judge.record import (
    Baseline,
    PredictedTime,
    Prediction,
    Record,
    RivalResult,
    to_json,
)
from judge.scoring import case_score, result_score
from judge.suites import load_suites
from judge.timing import summarize
from judge.verdict import Verdict
from scripts.ladder.versions import ROOT, VERSIONS, Fate
from tests.make_record import make_environment, make_record, make_result

SUITES = {suite.name: suite for suite in load_suites(sorted((ROOT / "cases").glob("*.yaml")))}
PUBLIC = SUITES["public"]
CASES = {case.name: case for case in PUBLIC.cases}
CLOCK_FACTOR = 1.25
_STEP_US = {
    **{"v01_gemm": 15.0, "v02_tma": 11.0, "v02b_tma_dv32": 8.0, "v05_adaptive_dv": 10.0},
    **{"v06_warp_specialized": 3.5, "v07_gva_dv": 2.6, "v14_cuda_graph": 2.5, "champion": 1.1},
    **{"v03_qk_double_buffer": 11.5, "v09b_direct_store": 3.7, "v11_merged_gates": 3.2},
    **{"v15_three_stage": 2.55, "v20_two_ctas": 7.0, "v21_64_registers": 6.1},
    **{"parallel_scan": 2.2, "v04_no_decay_A": 3.0, "v09_missing_barriers": 2.4, "w8a8_int8": 9.0},
}
_HOST_MS = {"v14_cuda_graph": 0.012}


def median_ms(version: str, case: str, sms: int) -> float:
    """Steps of a chain, times waves of chains, times the version's microseconds a step."""
    shape = CASES[case]
    waves = -(-shape.batch * shape.v_heads // sms)
    steps = -(-shape.tokens // 64)
    return round(_HOST_MS.get(version, 0.03) + waves * steps * _STEP_US[version] / 1000, 6)


def fails(version: str, case: str) -> bool:
    """What is wrong here: all of v04, v09 on long cases, int8 where there is a state."""
    fate = VERSIONS[version].fate
    if fate is Fate.SOMETIMES:
        return case.endswith("_state" if version == "w8a8_int8" else "_gva")
    return fate is Fate.WRONG


def ladder_record(version: str, sms: int, *, scored: bool = False, whole: int = 132) -> Record:
    """A record of the public suite. scored: t100 and t60 are 1.5 and 6 ms."""
    names = list(CASES)
    t100 = dict.fromkeys(names, 1.5) if scored else {}
    t60 = dict.fromkeys(names, 6.0) if scored else {}
    baseline = Baseline(
        "checkpoints" if scored else "none", "made-up" if scored else "", t100, t60, {}
    )
    results = []
    for name, case in CASES.items():
        wrong = fails(version, name)
        result = make_result(
            "public",
            case,
            verdict=Verdict.WRONG if wrong else Verdict.PASS,
            median_ms=None if wrong else median_ms(version, name, sms),
            detail="final_state: 2 of 9 elements, worst 10.25 times the tolerance" if wrong else "",
        )
        result.score = result_score(case, result.verdict, result.timing, baseline)
        results.append(result)
    record = make_record([PUBLIC], results, name=version)
    environment = replace(make_environment(), sms=sms, sms_of=None if sms == whole else whole)
    return replace(record, baseline=baseline, environment=environment)


def with_prediction(record: Record) -> Record:
    """As of a run with --slice: times by CLOCK_FACTOR, scores by t100 = 2 ms and t60 = 8 ms."""
    times = []
    for result in record.results:
        if result.timing is not None:
            guess = result.timing.median_ms * CLOCK_FACTOR
            score = case_score(guess, 2.0, 8.0)
            times.append(PredictedTime(result.case.name, "student", "core", guess, score))
    return replace(record, prediction=Prediction("h800-mig-1g.10gb", CLOCK_FACTOR, times))


def rival(implementation: str, case: str, milliseconds: float) -> RivalResult:
    """A public implementation's whole forward, timed in turns."""
    timing = summarize([milliseconds] * 3)
    return RivalResult(
        *(case, implementation, "full_forward", "1.0", Verdict.PASS, "", "", timing, True)
    )


def write(record: Record, folder: Path) -> Path:
    """Write a record as scripts/measure_ladder.py names it."""
    environment = record.environment
    label = environment.sms if environment.sms_of else "all"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{record.submission.name}-{label}.json"
    file.write_text(to_json(record))
    return file


def write_all(folder: Path) -> None:
    """All versions on 132, 16 and 14 SMs, and a calibration of the whole device."""
    for name in VERSIONS:
        write(ladder_record(name, 132, scored=True), folder)
        write(ladder_record(name, 16), folder)
        write(with_prediction(ladder_record(name, 14)), folder)
    rivals = [
        rival(name, case, factor * median_ms("v14_cuda_graph", case, 132))
        for name, factor in (("flash_qla", 0.8), ("fla", 2.0), ("flashinfer", 1.3))
        for case in CASES
    ]
    (folder / "calibration.json").write_bytes(msgspec.json.encode(rivals))


def write_profile(folder: Path, version: str, case: str, rows: list[dict[str, float]]) -> Path:
    """A CSV as `run.py profile --tool ncu` writes it, a row a launch."""
    columns = ["kernel", "duration_us", "tensor_active_pct", "issue_active_pct", "sms_busy_pct"]
    columns += [name for name in rows[0] if name not in columns]
    lines = [",".join(columns)]
    for row in rows:
        cells = {"kernel": "kernel_kernel", **row}
        lines.append(",".join(str(cells.get(column, "")) for column in columns))
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{version}-{case}-ncu-figures.csv"
    file.write_text("\n".join(lines) + "\n")
    return file
