"""The raw files of docs/baselines.md: one folder a session, which is a machine and one of its GPUs.

What is compared closely (live and calibrated scores, repeated runs) must be of one session; two
GPUs of a kind can differ by more than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import msgspec

from judge.record import Record, from_json
from scripts.baselines.waves import Waves

BUDGETS = ("all", "16", "14")
"""The whole device, what Hopper hands out, and the lab's slice."""

FEW = (16, 14)
RUNS = 5
LIVE, CALIBRATED = "live", "calibrated"


class BaselinesError(ValueError):
    """A file that is not what the page is written from; one line."""


@dataclass(frozen=True)
class SessionFolder:
    """Where each file of a session lies."""

    path: Path

    def table(self, budget: str) -> Path:
        """The record of the extended table on a budget of BUDGETS; the lab's CSV beside it."""
        return self.path / f"table-{budget}.json"

    def scored(self, version: str, baseline: str) -> Path:
        """A submission's record, LIVE or CALIBRATED."""
        return self.path / f"{baseline}-{version}.json"

    @property
    def calibration(self) -> Path:
        """The checkpoint file; its samples lie beside it."""
        return self.path / "calibration.yaml"

    def waves(self, sms: int) -> Path:
        """Times of equal CTAs on so many SMs."""
        return self.path / f"waves-{sms}.json"

    def run(self, version: str, number: int) -> Path:
        """The record of one of a submission's repeated runs, from 1 on."""
        return self.path / f"spread-{version}-{number}.json"

    def runs(self, version: str) -> list[Path]:
        """The repeated runs of a submission that are there."""
        files = [self.run(version, number) for number in range(1, RUNS + 1)]
        return [file for file in files if file.is_file()]

    def has_pair(self, version: str) -> bool:
        """Whether a submission has been scored in both ways."""
        return all(self.scored(version, baseline).is_file() for baseline in (LIVE, CALIBRATED))


def budget_title(budget: str) -> str:
    """A budget of BUDGETS in words."""
    return "all SMs" if budget == "all" else f"{budget} SMs"


def session_folders(folder: Path) -> list[SessionFolder]:
    """The sessions of a folder, by name."""
    return [SessionFolder(path) for path in sorted(folder.glob("*")) if path.is_dir()]


@dataclass(frozen=True)
class Pair:
    """A submission's records of one session."""

    live: Record
    calibrated: Record


@dataclass(frozen=True)
class RecordFile:
    """A record, and where it lies."""

    file: Path
    record: Record


@dataclass(frozen=True)
class Measured:
    """All that was measured. tables: by budget. pairs: by submission. waves: by SMs.

    runs: repeated runs by submission, each one's of one session. sessions: how many folders there
    are.
    """

    tables: dict[str, Record]
    pairs: dict[str, Pair]
    waves: dict[int, Waves]
    runs: dict[str, list[Record]]
    sessions: int

    @property
    def records(self) -> list[Record]:
        """Every record."""
        paired = [record for pair in self.pairs.values() for record in (pair.live, pair.calibrated)]
        return [*self.tables.values(), *paired, *chain(*self.runs.values())]


def read_measured(folder: Path, versions: Sequence[str]) -> Measured:
    """Read a folder; of what several sessions have, the newest, of runs the most.

    versions: names of the submissions. Raises BaselinesError where a file is not what it is called.
    """
    sessions = session_folders(folder)
    pairs: dict[str, Pair] = {}
    waves: dict[int, Waves] = {}
    runs: dict[str, list[Record]] = {}
    for session in sessions:
        for version in versions:
            if session.has_pair(version):
                pair = _pair(session, version)
                if version not in pairs or pair.live.created > pairs[version].live.created:
                    pairs[version] = pair
            if len(files := session.runs(version)) > len(runs.get(version, [])):
                runs[version] = [_record(file) for file in files]
        for sms in FEW:
            if (file := session.waves(sms)).is_file():
                found = _waves(file)
                if sms not in waves or found.created > waves[sms].created:
                    waves[sms] = found
    tables = {budget: one.record for budget, one in newest_tables(folder).items()}
    return Measured(tables, pairs, waves, runs, len(sessions))


def newest_tables(folder: Path, submission: str | None = None) -> dict[str, RecordFile]:
    """The newest table of each budget of BUDGETS that has one, of all sessions of a folder.

    submission: whose tables count, all others being passed over; None for any. Raises
    BaselinesError where a file is not what it is called.
    """
    tables: dict[str, RecordFile] = {}
    for session in session_folders(folder):
        for budget in BUDGETS:
            if not (file := session.table(budget)).is_file():
                continue
            record = _record(file)
            if _budget(record) != budget:
                raise BaselinesError(f"{file}: was made on {_budget(record)} SMs")
            if submission not in (None, record.submission.name):
                continue
            if budget not in tables or record.created > tables[budget].record.created:
                tables[budget] = RecordFile(file, record)
    return tables


def _budget(record: Record) -> str:
    environment = record.environment
    return "all" if environment.sms_of is None else str(environment.sms)


def _pair(session: SessionFolder, version: str) -> Pair:
    both = [_record(session.scored(version, baseline)) for baseline in (LIVE, CALIBRATED)]
    for record, source in zip(both, ("live", "checkpoints"), strict=True):
        if record.baseline.source != source:
            told = f"{record.submission.name} was scored by {record.baseline.source}"
            raise BaselinesError(f"{session.path}: {told}, not by {source}")
    return Pair(*both)


def _record(file: Path) -> Record:
    try:
        return from_json(file.read_bytes())
    except (ValueError, msgspec.MsgspecError) as error:
        raise BaselinesError(f"{file}: no record: {error}") from None


def _waves(file: Path) -> Waves:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Waves)
    except msgspec.MsgspecError as error:
        raise BaselinesError(f"{file}: no waves: {error}") from None
