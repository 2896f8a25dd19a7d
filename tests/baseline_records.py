"""Made-up raw files of docs/baselines.md: every time follows from case, implementation and SMs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from judge.checkpoints import load_checkpoints
from judge.implementations import SIMPLE, STUDENT
from judge.record import Baseline, Record, RivalResult, to_json
from judge.scoring import result_score
from judge.slices import SLICES, predict
from judge.timing import summarize
from judge.verdict import Verdict
from scripts.baselines.sessions import CALIBRATED, LIVE, SessionFolder
from scripts.baselines.times import COLUMNS, Implementation
from scripts.baselines.waves import COUNTS, Waves
from scripts.ladder.versions import right
from scripts.write_baselines import LAB
from tests.ladder_records import CASES, PUBLIC
from tests.make_record import make_environment, make_record, make_result

HOST_MS = 0.05
SLICE = SLICES["h800-mig-1g.10gb"]
_PLACE = {(one.name, one.scope): number for number, one in enumerate(COLUMNS)}


def gpu_ms(case: str, one: Implementation, sms: int) -> float:
    """Grows with the work, falls with the SMs, and is another one for every implementation."""
    shape = CASES[case]
    work = shape.batch * shape.tokens * shape.v_heads / 1e5
    return round((1 + 0.1 * _PLACE[one.name, one.scope]) * work * 132 / sms, 6)


def event_ms(case: str, one: Implementation, sms: int) -> float:
    """The same with the host's share."""
    return gpu_ms(case, one, sms) + HOST_MS


def table_record(sms: int, *, without: Sequence[str] = (), name: str = "champion") -> Record:
    """An extended table. without: implementations that are not installed."""
    results, rivals = [], []
    for case in PUBLIC.cases:
        for one in COLUMNS:
            median, gpu = (time(case.name, one, sms) for time in (event_ms, gpu_ms))
            if one == COLUMNS[0]:
                result = make_result("public", case, median_ms=median)
                results.append(replace(result, gpu_ms=gpu, gpu_ms_by="graph"))
            elif one.name not in without:
                rivals.append(
                    RivalResult(
                        *(case.name, one.name, one.scope),
                        "" if one.name in (STUDENT, SIMPLE) else "1.0",
                        *(Verdict.PASS, "", "", summarize([median] * 3), True, gpu, "graph"),
                    )
                )
    record = make_record([PUBLIC], results, name=name)
    environment = replace(make_environment(), sms=sms, sms_of=None if sms == 132 else 132)
    prediction = (
        predict(SLICE, load_checkpoints(LAB), results, rivals) if sms == SLICE.sms else None
    )
    return replace(record, environment=environment, rivals=rivals, prediction=prediction)


def scored_record(name: str, source: str, factor: float = 1.0) -> Record:
    """A submission whose times are `factor` of t100, which is 1 ms; t60 is 4 ms."""
    names = list(CASES)
    baseline = Baseline(source, "made-up", dict.fromkeys(names, 1.0), dict.fromkeys(names, 4.0), {})
    results = []
    for case in PUBLIC.cases:
        result = make_result("public", case, median_ms=factor)
        result.score = result_score(case, result.verdict, result.timing, baseline)
        results.append(replace(result, gpu_ms=0.9 * factor, gpu_ms_by="graph"))
    return replace(make_record([PUBLIC], results, name=name), baseline=baseline)


def run_record(median_ms: float, gpu: float | None) -> Record:
    """A repeated run in which every case took the same."""
    results = [
        replace(make_result("public", case, median_ms=median_ms), gpu_ms=gpu)
        for case in PUBLIC.cases
    ]
    return make_record([PUBLIC], results, name="champion")


def made_waves(sms: int, *, late: int | None = None) -> Waves:
    """1.01 ms a wave. late: a number of CTAs that take a wave more than they must."""
    times = {count: [1.01 * (-(-count // sms) + (count == late))] * 3 for count in (1, *COUNTS)}
    created = "2026-01-02T03:04:05+00:00"
    return Waves("NVIDIA H200", "580", "2.11.0", sms, created, 1_000_000, times)


def write_record(record: Record, file: Path) -> None:
    """Write a record where it belongs."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(to_json(record))


def write_waves(waves: Waves, session: SessionFolder) -> None:
    """Write waves where they belong."""
    session.path.mkdir(parents=True, exist_ok=True)
    session.waves(waves.sms).write_bytes(msgspec.json.encode(waves))


def write_pair(session: SessionFolder, name: str, live: Record, calibrated: Record) -> None:
    """Write a submission's two records."""
    write_record(live, session.scored(name, LIVE))
    write_record(calibrated, session.scored(name, CALIBRATED))


def write_session(folder: Path) -> SessionFolder:
    """All of it, in one session, nothing missing."""
    session = SessionFolder(folder / "0123abcd")
    for budget, sms in (("all", 132), ("16", 16), ("14", 14)):
        write_record(table_record(sms), session.table(budget))
    for version in right():
        live = scored_record(version.name, "live", 1.0)
        write_pair(session, version.name, live, scored_record(version.name, "checkpoints", 1.01))
    for sms in (16, 14):
        write_waves(made_waves(sms), session)
    for number in range(1, 6):
        write_record(run_record(1.0 + number / 1000, 0.9), session.run("champion", number))
    return session
