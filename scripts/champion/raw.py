"""The champion's raw files: those of its own folder, else what other pages have of the same.

public.json         run.py --reference-benchmarks, all SMs: times beside the public kernels; else
                    the baselines' newest table of the champion on all SMs
public_16_sms.json  the same on 16 SMs with --baseline live: the score; else the newest on 16 SMs
all_suites.json     run.py on the public, hidden and correctness suites; else the ladder's record
                    of the champion on all SMs
variants.json       scripts/vary_champion.py
sweep*.csv          scripts/sweep_shapes.py, each with its .json
ceilings.json       what the judge measured the device to reach (judge/floor.py)
VERSION.json        run.py on another version of the ladder, all SMs; else the ladder's own
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from judge.floor import Ceilings
from judge.implementations import CORE
from judge.record import CaseResult, Record, RivalResult, from_json
from judge.verdict import Verdict
from scripts.baselines.sessions import RecordFile, newest_tables
from scripts.champion.outcomes import Outcomes
from scripts.in_process import Run
from scripts.ladder.records import read_ladders
from scripts.ladder.versions import PUBLIC_SUITE, VERSIONS

CHAMPION = "champion"
PUBLIC, FEW, SUITES = "public.json", "public_16_sms.json", "all_suites.json"
VARIANTS, SWEEPS, CEILINGS = "variants.json", "sweep*.csv", "ceilings.json"
FEW_SMS = 16
FLASH_QLA = "flash_qla"
_T = TypeVar("_T")


class RawError(ValueError):
    """A file that is not what the page is written from; one line."""


@dataclass(frozen=True)
class Shape:
    """One row of a sweep. medians_ms: by contender, the champion's first."""

    batch: int
    tokens: int
    qk_heads: int
    v_heads: int
    gate: str
    medians_ms: dict[str, float]
    ratio: float
    difference: float


@dataclass(frozen=True)
class Sweep:
    """A run of scripts/sweep_shapes.py."""

    file: Path
    run: Run
    shapes: list[Shape]


@dataclass(frozen=True)
class Raw:
    """All that there is; None or empty where a file is missing.

    versions: records of other versions of the ladder on all SMs of the same kind of device.
    files: all that was read, by the name that it has, or would have, in the folder.
    """

    folder: Path
    public: Record | None
    few: Record | None
    suites: Record | None
    variants: Outcomes | None
    sweeps: list[Sweep]
    ceilings: Ceilings | None
    versions: dict[str, Record]
    files: dict[str, Path]

    @property
    def missing(self) -> list[str]:
        """What there is nothing of, in words."""
        parts = {
            "times beside the public kernels": self.public,
            "the score": self.few,
            "correctness": self.suites,
            "variants": self.variants,
            "other shapes": self.sweeps,
            "the device's ceilings": self.ceilings,
            "other versions": self.versions,
        }
        return [name for name, there in parts.items() if not there]


def read_raw(folder: Path, ladder: Path, baselines: Path) -> Raw:
    """Read a folder, and the ladder's and the baselines' records for those that are not there.

    Any of the three may be missing. Of the baselines' tables those of another submission are
    passed over, so that the champion's stay in use when a newer one is of another. Raises RawError
    where a file is not what its name says, ValueError where it has another form.
    """
    tables, whole = newest_tables(baselines, CHAMPION), _whole(ladder)
    public = _champion(folder / PUBLIC, None, tables.get("all"))
    few = _champion(folder / FEW, FEW_SMS, tables.get(str(FEW_SMS)))
    suites = _champion(folder / SUITES, None, whole.pop(CHAMPION, None))
    versions = _versions(folder, whole, public.record) if public is not None else {}
    sweeps = sorted(folder.glob(SWEEPS))
    named = {PUBLIC: public, FEW: few, SUITES: suites}
    named |= {_own_file(name): one for name, one in versions.items()}
    files = {name: one.file for name, one in named.items() if one is not None}
    others = (folder / VARIANTS, *sweeps, folder / CEILINGS)
    files |= {file.name: file for file in others if file.is_file()}
    return Raw(
        folder=folder,
        public=public and public.record,
        few=few and few.record,
        suites=suites and suites.record,
        variants=_decoded(folder / VARIANTS, Outcomes),
        sweeps=[_sweep(file) for file in sweeps],
        ceilings=_decoded(folder / CEILINGS, Ceilings),
        versions={name: one.record for name, one in versions.items()},
        files=files,
    )


def results_of(record: Record, suite: str = PUBLIC_SUITE) -> dict[str, CaseResult]:
    """Results of a suite by case."""
    return {one.case.name: one for one in record.results if one.suite == suite}


def rival_of(record: Record, case: str, implementation: str, scope: str) -> RivalResult | None:
    """A rival that is right on a case, else None."""
    for one in record.rivals:
        if (one.case, one.implementation, one.scope) == (case, implementation, scope):
            return one if one.verdict is Verdict.PASS else None
    return None


def gpu_ms(result: CaseResult | None) -> float | None:
    """A call without its host cost, in ms, where the case passed and that was measured."""
    return result.gpu_ms if result is not None and result.verdict is Verdict.PASS else None


@dataclass(frozen=True)
class Times:
    """Milliseconds of the champion on a public case, and of FlashQLA's core beside it.

    events: median of calls timed by events. None: not measured, or wrong.
    """

    result: CaseResult
    events: float | None
    gpu: float | None
    core: float | None

    @property
    def host(self) -> float | None:
        """What the host adds to a call."""
        return None if self.events is None or self.gpu is None else self.events - self.gpu

    @property
    def ratio(self) -> float | None:
        """The champion's GPU time over FlashQLA's core's."""
        return None if self.gpu is None or self.core is None else self.gpu / self.core


def times_of(record: Record) -> dict[str, Times]:
    """By public case."""
    found = {}
    for name, result in results_of(record).items():
        right = result.verdict is Verdict.PASS and result.timing is not None
        core = rival_of(record, name, FLASH_QLA, CORE)
        found[name] = Times(
            result,
            result.timing.median_ms if right else None,
            gpu_ms(result),
            core.gpu_ms if core is not None else None,
        )
    return found


def _champion(file: Path, sms: int | None, other: RecordFile | None) -> RecordFile | None:
    """A record of the champion on so many SMs, None for all; `other` where there is no file."""
    found = _record(file) or other
    if found is None:
        return None
    name, machine = found.record.submission.name, found.record.environment
    if name != CHAMPION:
        raise RawError(f"{found.file}: is of {name}, not of the champion")
    here = machine.sms if machine.sms_of is not None else None
    if machine.sms is None or here != sms:
        wanted = "all" if sms is None else sms
        raise RawError(f"{found.file}: should be of {wanted} SMs, is of {machine.sms}")
    return found


def _whole(ladder: Path) -> dict[str, RecordFile]:
    """The ladder's records on all SMs."""
    return {
        name: RecordFile(one.files[name], record)
        for one in read_ladders(ladder)
        if one.whole
        for name, record in one.records.items()
    }


def _versions(
    folder: Path, ladder: Mapping[str, RecordFile], champion: Record
) -> dict[str, RecordFile]:
    """A folder's records of other versions, else the ladder's, on the champion's kind of device."""
    found = dict(ladder)
    for name in VERSIONS:
        own = _record(folder / _own_file(name))
        if own is not None and name != CHAMPION:
            found[name] = own
    device = champion.environment.device_name
    return {
        name: one
        for name, one in found.items()
        if one.record.environment.device_name == device and one.record.environment.sms_of is None
    }


def _own_file(version: str) -> str:
    return f"{version}.json"


def _record(file: Path) -> RecordFile | None:
    if not file.is_file():
        return None
    try:
        return RecordFile(file, from_json(file.read_bytes()))
    except (ValueError, msgspec.MsgspecError) as error:
        raise RawError(f"{file}: no record: {error}") from None


def _decoded(file: Path, kind: type[_T]) -> _T | None:
    if not file.is_file():
        return None
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except msgspec.MsgspecError as error:
        raise RawError(f"{file}: {error}") from None


def _sweep(file: Path) -> Sweep:
    run = _decoded(file.with_suffix(".json"), Run)
    if run is None:
        raise RawError(f"{file}: {file.with_suffix('.json').name} is missing beside it")
    try:
        with file.open(newline="") as text:
            return Sweep(file, run, list(_shapes(csv.DictReader(text))))
    except (KeyError, ValueError, TypeError) as error:
        raise RawError(f"{file}: no sweep: {error!r}") from None


def _shapes(rows: Iterator[Mapping[str, str]]) -> Iterator[Shape]:
    for row in rows:
        sizes = [int(row[name]) for name in ("batch", "tokens", "qk_heads", "v_heads")]
        medians = {
            name.removesuffix("_ms"): float(value)
            for name, value in row.items()
            if name.endswith("_ms")
        }
        yield Shape(*sizes, row["gate"], medians, float(row["ratio"]), float(row["difference"]))
