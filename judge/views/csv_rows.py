"""A Record as CSV: the lab's three columns, or everything but the samples."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping

from judge.record import CaseResult, Record, TensorError
from judge.scoring import speed_up
from judge.text import csv_cell
from judge.verdict import Verdict

LAB_COLUMNS = ("case", "correctness", "median_ms")

Value = str | int | float | bool | None


def lab_csv(record: Record) -> str:
    """The lab's own form: PASS or FAIL, median in ms with six decimals, empty where there is none.

    NOT_RUN is FAIL here, as the form has no third word.
    """
    return csv_text(
        LAB_COLUMNS,
        (
            {
                "case": result.case.name,
                "correctness": "PASS" if result.verdict is Verdict.PASS else "FAIL",
                "median_ms": six_decimals(result.timing.median_ms if result.timing else None),
            }
            for result in record.results
        ),
    )


def full_csv(record: Record) -> str:
    """One row a case with everything that the record holds about it, except the samples.

    Times are in ms with six decimals; true and false in lower case; empty where there is none.
    """
    rows = [_full_row(record, result) for result in record.results]
    return csv_text(FULL_COLUMNS, rows)


FULL_COLUMNS = (
    "submission",
    "suite",
    "case",
    "batch",
    "tokens",
    "qk_heads",
    "v_heads",
    "initial_state",
    "gate",
    "gate_value",
    "beta",
    "equal_keys",
    "zero_values",
    "tolerance",
    "timed",
    "verdict",
    "rules",
    "detail",
    "median_ms",
    "min_ms",
    "p10_ms",
    "p90_ms",
    "spread",
    "samples",
    "t100_ms",
    "t60_ms",
    "speedup",
    "score",
    "output_max_ratio",
    "output_share_wrong",
    "final_state_max_ratio",
    "final_state_share_wrong",
    "wall_s",
    "clock",
    "official",
    "warmup",
    "seed",
    "protocol",
    "sandbox",
    "baseline",
    "baseline_name",
    "device_name",
    "sms",
    "tilelang",
    "torch",
    "judge",
    "created",
    "gpu_ms",
    "gpu_ms_by",
    "noisy",
    "repeated",
    "charged_ms",
)


def _full_row(record: Record, result: CaseResult) -> dict[str, Value]:
    case, timing, baseline = result.case, result.timing, record.baseline
    output = _error_of(result, "output")
    state = _error_of(result, "final_state")
    return {
        "submission": record.submission.name,
        "suite": result.suite,
        "case": case.name,
        "batch": case.batch,
        "tokens": case.tokens,
        "qk_heads": case.qk_heads,
        "v_heads": case.v_heads,
        "initial_state": case.initial_state,
        "gate": case.gate,
        "gate_value": case.gate_value,
        "beta": case.beta,
        "equal_keys": case.equal_keys,
        "zero_values": case.zero_values,
        "tolerance": case.tolerance,
        "timed": case.timed,
        "verdict": result.verdict.value,
        "rules": record.submission.rules.value,
        "detail": result.detail,
        "median_ms": six_decimals(timing.median_ms if timing else None),
        "min_ms": six_decimals(timing.min_ms if timing else None),
        "p10_ms": six_decimals(timing.p10_ms if timing else None),
        "p90_ms": six_decimals(timing.p90_ms if timing else None),
        "spread": timing.spread if timing else None,
        "samples": len(timing.samples_ms) if timing else None,
        "t100_ms": six_decimals(baseline.t100_ms.get(case.name)),
        "t60_ms": six_decimals(baseline.t60_ms.get(case.name)),
        "speedup": speed_up(result, baseline),
        "score": result.score,
        "output_max_ratio": output.max_ratio if output else None,
        "output_share_wrong": output.share_wrong if output else None,
        "final_state_max_ratio": state.max_ratio if state else None,
        "final_state_share_wrong": state.share_wrong if state else None,
        "wall_s": sum(result.seconds.values()),
        "clock": record.protocol.clock,
        "official": record.protocol.official,
        "warmup": record.protocol.warmup,
        "seed": record.protocol.seed,
        "protocol": record.protocol.name,
        "sandbox": record.protocol.sandbox,
        "baseline": baseline.source,
        "baseline_name": baseline.name,
        "device_name": record.environment.device_name,
        "sms": record.environment.sms,
        "tilelang": record.environment.tilelang,
        "torch": record.environment.torch,
        "judge": record.judge_version,
        "created": record.created,
        "gpu_ms": six_decimals(result.gpu_ms),
        "gpu_ms_by": result.gpu_ms_by,
        "noisy": result.noisy,
        "repeated": result.repeated,
        "charged_ms": six_decimals(result.witness.charged_ms if result.witness else None),
    }


def _error_of(result: CaseResult, tensor: str) -> TensorError | None:
    return next((error for error in result.errors or () if error.tensor == tensor), None)


def six_decimals(value: float | None) -> str:
    """A time or ratio as the lab's CSV has it, empty where there is none."""
    return "" if value is None else f"{value:.6f}"


def _cell(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    return csv_cell(str(value))


def csv_text(columns: tuple[str, ...], rows: Iterable[Mapping[str, Value]]) -> str:
    """A header and the rows' cells of these columns; None is empty, no cell starts a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(_cell(row[column]) for column in columns)
    return text.getvalue()
