"""From what was timed on a device to a checkpoint file of it, and the samples behind that."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml

from judge.baseline import LEAST_RATIO
from judge.case import Case
from judge.checkpoints import VERSIONS
from judge.record import Environment, RivalResult
from judge.repetitions import Repetitions
from judge.rivals import T60, T100

_MAX_NAME = 64


@dataclass(frozen=True)
class Calibration:
    """What was timed, and with what. present: versions of the public implementations, by name.

    date: UTC in ISO 8601.
    """

    environment: Environment
    present: Mapping[str, str]
    count: Repetitions
    date: str
    cases: Sequence[Case]
    results: Sequence[RivalResult]


def default_name(environment: Environment) -> str:
    """Name of a device's own checkpoint file: nvidia-h200-132-sms."""
    slug = re.sub(r"[^a-z0-9.]+", "-", environment.device_name.lower()).strip("-.")
    ending = f"-{environment.sms}-sms"
    return f"{slug[: _MAX_NAME - len(ending)]}{ending}"


def calibrated_cases(calibration: Calibration) -> list[dict[str, object]]:
    """The file's rows: cases of which both times are known, t60 at LEAST_RATIO of t100 or above."""
    rows = []
    for case in calibration.cases:
        timed = {
            one.role: one
            for one in calibration.results
            if one.case == case.name and one.role and one.timing is not None
        }
        if T100 not in timed or T60 not in timed:
            continue
        best, simple = timed[T100].timing, timed[T60].timing
        rows.append(
            {
                "name": case.name,
                "batch": case.batch,
                "tokens": case.tokens,
                "qk_heads": case.qk_heads,
                "v_heads": case.v_heads,
                "t60_ms": round(max(simple.median_ms, LEAST_RATIO * best.median_ms), 6),
                "t100_ms": round(best.median_ms, 6),
                "t100_by": timed[T100].implementation,
                "t60_spread": round(simple.spread, 4),
                "t100_spread": round(best.spread, 4),
            }
        )
    return rows


def write_checkpoints(calibration: Calibration, path: Path) -> None:
    """Write a checkpoint file and, beside it as .json, every sample of every implementation.

    Raises ValueError where no case has both times, OSError where a file cannot be written.
    """
    cases = calibrated_cases(calibration)
    if not cases:
        raise ValueError("no public implementation was right on any case")
    samples = path.with_suffix(".json")
    raw = msgspec.json.format(msgspec.json.encode(list(calibration.results)), indent=2) + b"\n"
    environment = calibration.environment
    known = {name: getattr(environment, name, None) for name in VERSIONS} | dict(
        calibration.present
    )
    count = calibration.count
    content = {
        "name": path.stem,
        "device": re.sub(r"([*?\[])", r"[\1]", environment.device_name),
        "sms": environment.sms,
        "protocol": f"CUDA events, {count.warmup} warm-ups, median of {count.repetitions} calls",
        "source": "run.py calibrate: t100 is the fastest public whole forward (t100_by), t60 "
        "reference/simple_tilelang.py",
        "date": calibration.date,
        "versions": {name: version for name in VERSIONS if (version := known[name])},
        "samples": samples.name,
        "samples_sha256": hashlib.sha256(raw).hexdigest(),
        "cases": cases,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    samples.write_bytes(raw)
    path.write_text(yaml.safe_dump(content, sort_keys=False, width=100))
