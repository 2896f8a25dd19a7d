"""The part of a record that boards need, read without the rest, which is most of it.

Structs of msgspec take half the time of dataclasses to read.
"""

from __future__ import annotations

import msgspec

from judge.record import READABLE_VERSIONS, Environment, Protocol, Record, Score
from judge.verdict import Rules, Verdict


class BriefCase(msgspec.Struct):
    """A case's name, and whether it is timed."""

    name: str
    timed: bool


class BriefTiming(msgspec.Struct):
    """A case's times in milliseconds, without the samples."""

    median_ms: float
    p10_ms: float
    p90_ms: float


class BriefResult(msgspec.Struct):
    """What became of one case."""

    suite: str
    case: BriefCase
    verdict: Verdict
    score: float | None
    timing: BriefTiming | None


class BriefBaseline(msgspec.Struct):
    """Where t100 and t60 come from; milliseconds by case name."""

    source: str
    name: str
    t100_ms: dict[str, float]
    t60_ms: dict[str, float]


class BriefSubmission(msgspec.Struct):
    """Whether the submission kept the rules."""

    rules: Rules


class Brief(msgspec.Struct):
    """A record without errors, samples, audits and notes; its fields mean what the record's do.

    Stores keep it beside the record: a step of theirs must empty `briefs` when a field is added
    here, after which it is read from the record again.
    """

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


def shortened(text: bytes) -> bytes:
    """A record's JSON without what `Brief` leaves out. Raises msgspec.ValidationError."""
    return msgspec.json.encode(_DECODER.decode(text))


def brief_from_json(text: bytes) -> Brief:
    """What `judge.record.to_json` wrote, read in part, or what `shortened` made of it.

    Raises msgspec.ValidationError where a field is missing or of another type, and ValueError
    where the record was written under a schema version that is not among READABLE_VERSIONS.
    """
    brief = _DECODER.decode(text)
    if brief.schema_version not in READABLE_VERSIONS:
        raise ValueError(f"record has schema version {brief.schema_version}")
    return brief
