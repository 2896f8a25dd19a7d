"""The ladder's raw files: records of scripts/measure_ladder.py, figures of `run.py profile`."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from judge.implementations import CORE, FULL, SIMPLE, STUDENT
from judge.profiling.metrics import Stall
from judge.record import CaseResult, Record, RivalResult, from_json
from judge.verdict import Verdict
from scripts.ladder.versions import PUBLIC_SUITE, VERSIONS

CALIBRATION = "calibration*.json"
_STALL = "stall_"


class LadderError(ValueError):
    """A file that is not what the ladder is written from; one line."""


@dataclass(frozen=True)
class Ladder:
    """Records of one SM budget by version, in the ladder's order. whole: all SMs of the device.

    files: where the records lie.
    """

    sms: int
    whole: bool
    records: dict[str, Record] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """16 SMs."""
        return f"{self.sms} SMs"

    @property
    def predicts(self) -> bool:
        """Whether a record predicts times on the lab's slice."""
        return any(record.prediction is not None for record in self.records.values())

    def result(self, version: str, case: str) -> CaseResult | None:
        """A public case's result, None where it was not judged."""
        record = self.records.get(version)
        for result in record.results if record else ():
            if result.suite == PUBLIC_SUITE and result.case.name == case:
                return result
        return None

    def median(self, version: str, case: str) -> float | None:
        """Median in ms of a public case that passed, else None."""
        result = self.result(version, case)
        if result is None or result.verdict is not Verdict.PASS or result.timing is None:
            return None
        return result.timing.median_ms

    def medians(self) -> dict[str, dict[str, float]]:
        """Medians in ms of all public cases that passed, by version and case."""
        return {
            version: {
                result.case.name: result.timing.median_ms
                for result in record.results
                if result.suite == PUBLIC_SUITE
                and result.verdict is Verdict.PASS
                and result.timing is not None
            }
            for version, record in self.records.items()
        }

    def ratio(self, above: str, below: str, case: str) -> float | None:
        """A version's median over another one's; None where one of them has none."""
        first, second = self.median(above, case), self.median(below, case)
        return None if first is None or second is None else first / second

    def predicted(self, version: str, case: str) -> float | None:
        """Milliseconds on the lab's slice, where the record predicts them."""
        return self._prediction(version, case)[0]

    def predicted_score(self, version: str, case: str) -> float | None:
        """The score that the slice's own checkpoints give to that; 0 for what failed."""
        result = self.result(version, case)
        record = self.records.get(version)
        if result is None or record is None or record.prediction is None:
            return None
        return 0.0 if result.verdict is not Verdict.PASS else self._prediction(version, case)[1]

    def _prediction(self, version: str, case: str) -> tuple[float | None, float | None]:
        record = self.records.get(version)
        if record is None or record.prediction is None or self.median(version, case) is None:
            return None, None
        for one in record.prediction.times:
            if (one.case, one.implementation, one.scope) == (case, STUDENT, CORE):
                return one.milliseconds, one.score
        return None, None


def read_ladders(folder: Path) -> list[Ladder]:
    """The records of a folder, by SM budget, most SMs first.

    A file's name says nothing; version and SMs are the record's own. Raises LadderError where a
    file is no record, is none of a version, or is the second of a version and budget.
    """
    found: dict[int, dict[str, tuple[Path, Record]]] = {}
    for file in _record_files(folder):
        record = _record(file)
        name, sms = record.submission.name, record.environment.sms
        if name not in VERSIONS:
            raise LadderError(f"{file}: {name} is no version of the ladder")
        if sms is None:
            raise LadderError(f"{file}: was not made on a GPU")
        there = found.setdefault(sms, {})
        if name in there:
            raise LadderError(f"{file}: {there[name][0].name} is of {name} on {sms} SMs too")
        there[name] = file, record
    ladders = []
    for sms, records in sorted(found.items(), reverse=True):
        ordered = {name: records[name][1] for name in VERSIONS if name in records}
        whole = all(record.environment.sms_of is None for record in ordered.values())
        files = {name: records[name][0] for name in ordered}
        ladders.append(Ladder(sms, whole, ordered, files))
    return ladders


def _record_files(folder: Path) -> list[Path]:
    calibrations = set(folder.glob(CALIBRATION))
    return [file for file in sorted(folder.glob("*.json")) if file not in calibrations]


def _record(file: Path) -> Record:
    try:
        return from_json(file.read_bytes())
    except (ValueError, msgspec.MsgspecError) as error:
        raise LadderError(f"{file}: no record: {error}") from None


def read_public(folder: Path, ladder: Ladder) -> dict[str, dict[str, float]]:
    """Medians in ms of the public implementations, whole forward, by name and case.

    From the records of a ladder that have rivals, the first record that has a time; on all SMs what
    is missing there from the samples that `run.py calibrate` left in the folder.
    """
    results = [rival for record in ladder.records.values() for rival in record.rivals]
    if ladder.whole:
        for file in sorted(folder.glob(CALIBRATION)):
            try:
                results += msgspec.json.decode(file.read_bytes(), type=list[RivalResult])
            except msgspec.MsgspecError as error:
                raise LadderError(f"{file}: no samples of calibrate: {error}") from None
    found: dict[str, dict[str, float]] = {}
    for rival in results:
        public = rival.scope == FULL and rival.implementation not in (STUDENT, SIMPLE)
        if public and rival.verdict is Verdict.PASS and rival.timing is not None:
            times = found.setdefault(rival.implementation, {})
            times.setdefault(rival.case, rival.timing.median_ms)
    return found


@dataclass(frozen=True)
class Profile:
    """The launch of median duration of one version on one case, as ncu saw it.

    file: where it is from. tensor_active_pct, sms_busy_pct: percent, None where not collected.
    """

    version: str
    case: str
    file: Path
    duration_us: float
    tensor_active_pct: float | None
    issue_active_pct: float | None
    sms_busy_pct: float | None
    stalls: list[Stall]

    def stall(self, reason: str) -> float:
        """Share of the warp cycles spent in a state, 0 to 1."""
        return next((one.share for one in self.stalls if one.reason == reason), 0.0)


def read_profiles(folder: Path, versions: Sequence[str], cases: Sequence[str]) -> list[Profile]:
    """Those of `VERSION-CASE-ncu-figures.csv` that exist, by case, then by version."""
    named = [
        (version, case, folder / f"{version}-{case}-ncu-figures.csv")
        for case in cases
        for version in versions
    ]
    return [_profile(version, case, file) for version, case, file in named if file.is_file()]


def _profile(version: str, case: str, file: Path) -> Profile:
    try:
        with file.open(newline="") as text:
            rows = [row for row in csv.DictReader(text) if row["kernel"] == "kernel_kernel"]
        rows.sort(key=lambda row: float(row["duration_us"]))
        row = rows[(len(rows) - 1) // 2]
        cycles = {name: float(value) for name, value in row.items() if name.startswith(_STALL)}
        figures = [_figure(row, name) for name in ("tensor_active_pct", "issue_active_pct")]
        duration, busy = float(row["duration_us"]), _figure(row, "sms_busy_pct")
    except (KeyError, ValueError, IndexError) as error:
        raise LadderError(f"{file}: no figures of ncu: {error!r}") from None
    total = sum(cycles.values()) or 1.0
    stalls = [
        Stall(name.removeprefix(_STALL), value, value / total) for name, value in cycles.items()
    ]
    stalls.sort(key=lambda stall: -stall.cycles)
    return Profile(version, case, file, duration, *figures, busy, stalls)


def _figure(row: dict[str, str], name: str) -> float | None:
    return float(row[name]) if row[name] else None


def mean_or_none(values: Sequence[float | None]) -> float | None:
    """The mean, None where there is nothing or something is missing."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known and len(known) == len(values) else None
