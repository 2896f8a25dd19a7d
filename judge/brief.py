"""The part of a record that boards need, read without the rest, which is most of it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from judge.record import READABLE_VERSIONS, Environment, Protocol, Record, Score
from judge.verdict import Rules, Verdict


@dataclass
class BriefCase:
    """A case's name, and whether it is timed."""

    name: str
    timed: bool


@dataclass
class BriefTiming:
    """A case's times in milliseconds, without the samples."""

    median_ms: float
    p10_ms: float
    p90_ms: float


@dataclass
class BriefResult:
    """What became of one case."""

    suite: str
    case: BriefCase
    verdict: Verdict
    score: float | None
    timing: BriefTiming | None


@dataclass
class BriefBaseline:
    """Where t100 and t60 come from; milliseconds by case name."""

    source: str
    name: str
    t100_ms: dict[str, float]
    t60_ms: dict[str, float]


@dataclass
class BriefSubmission:
    """Whether the submission kept the rules."""

    rules: Rules


@dataclass
class Brief:
    """A record without errors, samples, audits and notes; its fields mean what the record's do."""

    schema_version: int
    judge_version: str
    created: str
    submission: BriefSubmission
    environment: Environment
    protocol: Protocol
    baseline: BriefBaseline
    results: list[BriefResult]
    score: Score


AnyRecord = Record | Brief

_DECODER = msgspec.json.Decoder(Brief)


def brief_from_json(text: bytes) -> Brief:
    """What `judge.record.to_json` wrote, read in part.

    Raises msgspec.ValidationError where a field is missing or of another type, and ValueError
    where the record was written under a schema version that is not among READABLE_VERSIONS.
    """
    brief = _DECODER.decode(text)
    if brief.schema_version not in READABLE_VERSIONS:
        raise ValueError(f"record has schema version {brief.schema_version}")
    return brief
