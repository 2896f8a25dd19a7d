"""Made-up raw files of the champion: every time follows from the case and the kernel."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from judge.case import Case
from judge.floor import Ceilings
from judge.record import Baseline, Record, RivalResult, to_json
from judge.scoring import result_score, score_run
from judge.timing import summarize
from judge.verdict import Rules, Verdict
from scripts.champion.goals import goals
from scripts.champion.outcomes import UNCHANGED, Change, Outcome, Outcomes
from scripts.champion.raw import Raw, read_raw
from scripts.champion.variants import VARIANTS
from scripts.in_process import Run
from scripts.sweep_shapes import shapes
from tests.ladder_records import CASES, SUITES
from tests.make_record import make_environment, make_record, make_result

HOST_MS = 0.003
DIGEST = "cd" * 32
CEILINGS = Ceilings(bytes_per_s=4e12, flops_per_s=750e12, cache_bytes=50 * 2**20)
OF_FLOOR = {
    "champion": 1.7,
    "v14_cuda_graph": 8.0,
    "v07_gva_dv": 9.0,
    "v02_tma": 40.0,
    "v01_gemm": 60.0,
    "flash_qla core": 3.6,
    "flash_qla full_forward": 4.3,
    "flashinfer full_forward": 11.0,
    "fla full_forward": 9.5,
}
"""GPU time as a multiple of FLOPs at 800 TFLOP/s."""


def gpu_time(kernel: str, case: Case) -> float:
    """Milliseconds: 4 us, and 9,437,184 FLOP a chunk of 64 tokens and value head."""
    flops = case.batch * case.v_heads * -(-case.tokens // 64) * 9_437_184
    return round(0.004 + OF_FLOOR[kernel] * flops / 800e9, 6)


def ratio(case: str) -> float:
    """The champion's GPU time over FlashQLA's core's."""
    return gpu_time("champion", CASES[case]) / gpu_time("flash_qla core", CASES[case])


def record_of(version: str, suites: tuple[str, ...] = ("public",)) -> Record:
    """A record on all SMs, without rivals or baseline."""
    results = []
    for suite in suites:
        for case in SUITES[suite].cases:
            ms = gpu_time(version, case)
            result = make_result(suite, case, median_ms=ms + HOST_MS if case.timed else None)
            results.append(replace(result, gpu_ms=ms if case.timed else None, gpu_ms_by="profiler"))
    record = make_record([SUITES[suite] for suite in suites], results, name=version)
    protocol = replace(record.protocol, name="strict")
    return replace(record, protocol=protocol, baseline=Baseline("none", "", {}, {}, {}))


def public_record() -> Record:
    """The champion beside all public kernels."""
    rivals = []
    for name in OF_FLOOR:
        implementation, _, scope = name.partition(" ")
        for case in CASES.values() if scope else ():
            ms = gpu_time(name, case)
            timing = summarize([ms + 0.05] * 3)
            rivals.append(
                RivalResult(
                    *(case.name, implementation, scope, "1.0", Verdict.PASS, "", "", timing, True),
                    *(ms, "graph"),
                )
            )
    return replace(record_of("champion"), rivals=rivals)


def few_record(t100: float = 2.4) -> Record:
    """On 16 SMs; t100 and t60 are so many times the champion's events, and four times that."""
    record = record_of("champion")
    medians = {one.case.name: one.timing.median_ms for one in record.results}
    baseline = Baseline(
        *("live", "flash_qla 0.1.3"),
        {case: t100 * ms for case, ms in medians.items()},
        {case: 4 * t100 * ms for case, ms in medians.items()},
        {},
    )
    for one in record.results:
        one.score = result_score(one.case, one.verdict, one.timing, baseline)
    score = score_run(
        [SUITES["public"]], record.results, gate_on=True, rules=Rules.OK, official=True
    )
    environment = replace(make_environment(), sms=16, sms_of=132)
    return replace(record, baseline=baseline, environment=environment, score=score)


def suites_record() -> Record:
    """All suites in full."""
    return record_of("champion", ("public", "hidden", "correctness"))


def variant_factor(name: str) -> float:
    """A variant's median over the champion's, on every case."""
    return 1.0 if name == UNCHANGED else 0.97 + 0.02 * [one.name for one in VARIANTS].index(name)


def outcomes() -> Outcomes:
    """Every variant on every public case."""
    run = Run("2026-01-02T03:04:05+00:00", make_environment(), {"champion": DIGEST})
    changes = [Change(one.name, one.text, one.off) for one in VARIANTS]
    found = []
    for case in CASES.values():
        for name in (UNCHANGED, *(one.name for one in VARIANTS)):
            ms = variant_factor(name) * (gpu_time("champion", case) + HOST_MS)
            found.append(Outcome(case.name, name, Verdict.PASS, ms, 0.01, [0.2, 0.7], [ms] * 3))
    return Outcomes(run, changes, found)


def shape_ratio(case: Case) -> float:
    """Falls with the tokens, and more where there are more chains."""
    return 1.08 * (64 / case.tokens) ** (0.05 + 0.01 * (case.batch * case.v_heads) ** 0.3)


def write_sweep(
    folder: Path, gates: tuple[str, ...] = ("random_decay",), keep: Callable[[Case], bool] = bool
) -> None:
    """A sweep over all shapes that are kept."""
    run = Run("2026-01-02T04:05:06+00:00", make_environment(), {"champion": DIGEST})
    (folder / "sweep.json").write_bytes(msgspec.json.encode(run))
    with (folder / "sweep.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        names = ("champion_ms", "v14_cuda_graph_ms", "flash_qla_whole_ms", "ratio", "difference")
        writer.writerow(["batch", "tokens", "qk_heads", "v_heads", "gate", *names])
        for case in filter(keep, shapes(gates)):
            factor = shape_ratio(case)
            sizes = [case.batch, case.tokens, case.qk_heads, case.v_heads, case.gate]
            writer.writerow([*sizes, f"{factor:.4f}", "1.0000", "1.5000", f"{factor:.3f}", "0.250"])


def write_all(folder: Path) -> None:
    """Every file, so that every demand is met."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, record in (
        ("public", public_record()),
        ("public_16_sms", few_record()),
        ("all_suites", suites_record()),
        ("v14_cuda_graph", record_of("v14_cuda_graph")),
        ("v01_gemm", record_of("v01_gemm")),
        ("v02_tma", record_of("v02_tma")),
        ("v07_gva_dv", record_of("v07_gva_dv")),
    ):
        (folder / f"{name}.json").write_text(to_json(record))
    (folder / "variants.json").write_bytes(msgspec.json.encode(outcomes()))
    (folder / "ceilings.json").write_bytes(msgspec.json.encode(CEILINGS))
    write_sweep(folder)


def write(folder: Path, name: str, record: object) -> None:
    """One record more, or in the place of another one."""
    (folder / name).write_text(to_json(record))


def read_all(folder: Path) -> Raw:
    """A folder, and beside it the ladder's and the baselines' where they are there."""
    return read_raw(folder, folder.parent / "ladder", folder.parent / "baselines")


def write_table(folder: Path, session: str, sms: str, record: Record, day: int = 2) -> Path:
    """A table among the baselines beside a folder, of a day of January; where it lies."""
    file = folder.parent / "baselines" / session / f"table-{sms}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(to_json(replace(record, created=f"2026-01-{day:02}T03:04:05+00:00")))
    return file


def asked(folder: Path, holds: bool | None) -> list[str]:
    """What is asked and does hold, does not, or is not known."""
    found = goals(read_all(folder))
    return [goal.asked for goal in found if goal.holds is holds]


def failing(folder: Path) -> list[str]:
    """What is asked and does not hold."""
    return asked(folder, False)
