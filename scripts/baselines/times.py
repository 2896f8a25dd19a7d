"""What a record says of one implementation on one case."""

from __future__ import annotations

from dataclasses import dataclass

from judge.implementations import CORE, FULL, SIMPLE, STUDENT
from judge.record import CaseResult, Record, RivalResult
from judge.verdict import Verdict
from scripts.names import PUBLIC_NAMES


@dataclass(frozen=True)
class Implementation:
    """A column: what was timed, and in which scope."""

    name: str
    scope: str

    @property
    def title(self) -> str:
        """FlashQLA whole."""
        own = {STUDENT: "submission", SIMPLE: "t60"}
        shown = own.get(self.name) or PUBLIC_NAMES.get(self.name, self.name)
        return f"{shown} {'whole' if self.scope == FULL else 'core'}"


COLUMNS = (
    *(
        Implementation(STUDENT, CORE),
        Implementation("flash_qla", CORE),
        Implementation(SIMPLE, CORE),
    ),
    Implementation(STUDENT, FULL),
    *(Implementation(name, FULL) for name in PUBLIC_NAMES),
)
WHOLE_PUBLIC = tuple(one for one in COLUMNS if one.scope == FULL and one.name != STUDENT)
WITHOUT_SIMPLE = tuple(one for one in COLUMNS if one.name != SIMPLE)


def own_result(record: Record, case: str) -> CaseResult | None:
    """The submission's result on a case; None where it has none."""
    return next((result for result in record.results if result.case.name == case), None)


def found(record: Record, case: str, one: Implementation) -> CaseResult | RivalResult | None:
    """An implementation's result on a case; None where it has none."""
    if (one.name, one.scope) == (STUDENT, CORE):
        return own_result(record, case)
    for rival in record.rivals:
        if (rival.case, rival.implementation, rival.scope) == (case, one.name, one.scope):
            return rival
    return None


def median(record: Record, case: str, one: Implementation) -> float | None:
    """Its event median in ms, None where it did not pass or was not timed."""
    result = found(record, case, one)
    if result is None or result.verdict is not Verdict.PASS or result.timing is None:
        return None
    return result.timing.median_ms


def gpu_ms(record: Record, case: str, one: Implementation) -> float | None:
    """Its time without the host's share in ms, where it passed."""
    result = found(record, case, one)
    return None if result is None or result.verdict is not Verdict.PASS else result.gpu_ms


def predicted(record: Record, case: str, one: Implementation) -> float | None:
    """What the record's prediction says of it in ms."""
    for time in record.prediction.times if record.prediction else ():
        if (time.case, time.implementation, time.scope) == (case, one.name, one.scope):
            return time.milliseconds
    return None
