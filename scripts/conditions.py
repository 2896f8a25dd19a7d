"""When, on what and how records were measured, as the pages tell it."""

from __future__ import annotations

from collections.abc import Iterable

from judge.record import Record
from judge.text import plain


def days(records: Iterable[Record]) -> str:
    """The day, or the first and the last; empty where there is no record."""
    found = sorted({record.created[:10] for record in records})
    return found[0] if len(found) == 1 else " to ".join([*found[:1], *found[-1:]])


def machine_and_protocol(record: Record, *, part: bool) -> str:
    """On what and how a record was measured. part: whether to tell of how many of its SMs."""
    machine, protocol = record.environment, record.protocol
    sms = f", {machine.sms} of {machine.sms_of} SMs" if part and machine.sms_of else ""
    return (
        f"{plain(machine.device_name)}{sms}, driver {machine.driver}, CUDA {machine.cuda}, "
        f"PyTorch {machine.torch}, TileLang {machine.tilelang}; {protocol.name} protocol, "
        f"{protocol.warmup} warm-ups, {protocol.repetitions} calls, judge {record.judge_version}"
    )


def protocol_and_calls(record: Record) -> str:
    """How a record was measured, in short."""
    return f"{record.protocol.name} protocol, {record.protocol.repetitions} calls"
