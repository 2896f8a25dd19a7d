"""The judge's own clock against the times that a child claims."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from judge.record import Witness


@dataclass(frozen=True)
class Repetition:
    """One repetition, in milliseconds and microseconds.

    claimed_ms: the call, as the child timed it. seen_ms: by the judge's clock, from sending the
    seed of new contents to having the digest of the result. busy_us: what the device still took
    to become idle after the call's stop event.
    """

    claimed_ms: float
    seen_ms: float
    busy_us: float

    def rest_ms(self, calls: int) -> float:
        """What the judge saw beside so many calls: renewal, digest, messages, idling."""
        return self.seen_ms - calls * self.claimed_ms


@dataclass(frozen=True)
class Allowance:
    """How much longer than the null submission's the rest of a repetition may be.

    calls: how many a repetition makes, the timed one and any before it with the old contents.
    rest_ms, rest_share: fixed, and as a share of the null submission's own rest. busy_us: how much
    longer the device may be busy after the stop event.
    """

    calls: int
    rest_ms: float
    rest_share: float
    busy_us: float


ALLOWANCES = {"cuda": Allowance(2, 0.1, 0.05, 30.0), "cpu": Allowance(1, 5.0, 1.0, 0.0)}
"""docs/trust.md holds the measurements behind them."""

_FEW = 10
"""Up to so many repetitions the quickest is compared with the null submission's slowest: on a busy
CPU a few medians say little."""
_COLD_MS, _COLD_SHARE = 0.1, 0.1
"""How much longer a call may take that finds cold caches: twice what was measured, and a share."""
_CLOCK_MARGIN = 1.05  # two clocks, one of them the GPU's


def weigh(
    seen: Sequence[Repetition],
    null: Sequence[Repetition],
    allowance: Allowance,
    floor_ms: float | None,
    cold: Sequence[Repetition] = (),
) -> tuple[Witness, str]:
    """The figures, and one line of evidence where they contradict the claimed times, else "".

    seen: the timed repetitions of a submission. null: those of a submission that does nothing, same
    case and device. floor_ms: the least that a call can take on this device, None where unknown.
    cold: repetitions of the submission that made the timed call alone.
    """
    many = min(len(seen), len(null)) > _FEW
    low, high = (statistics.median, statistics.median) if many else (min, max)
    null_rest = high(one.rest_ms(allowance.calls) for one in null)
    null_busy = high(one.busy_us for one in null)
    witness = Witness(
        claimed_ms=statistics.median(one.claimed_ms for one in seen),
        seen_ms=statistics.median(one.seen_ms for one in seen),
        unclaimed_ms=low(one.rest_ms(allowance.calls) for one in seen) - null_rest,
        allowed_ms=allowance.rest_ms + allowance.rest_share * null_rest,
        busy_us=low(one.busy_us for one in seen) - null_busy,
        null_ms=statistics.median(one.seen_ms for one in null),
        floor_ms=floor_ms,
    )
    evidence = _contradiction(witness, seen, allowance)
    if cold and not evidence:
        evidence = _cold_contradiction(witness, cold, null_rest)
    return witness, evidence


def _cold_contradiction(witness: Witness, cold: Sequence[Repetition], null_rest: float) -> str:
    """Whether calls without one before them contradict the clock, or the claims with one."""
    claimed = statistics.median(one.claimed_ms for one in cold)
    unclaimed = statistics.median(one.rest_ms(1) for one in cold) - null_rest
    if unclaimed > witness.allowed_ms:
        return (
            f"claimed {claimed:.6g} ms a call without one before it; the judge's clock saw "
            f"{unclaimed:.6g} ms more beside it, allowed are {witness.allowed_ms:.6g} ms"
        )
    if abs(claimed - witness.claimed_ms) > _COLD_MS + _COLD_SHARE * claimed:
        return (
            f"claimed {witness.claimed_ms:.6g} ms a call after another one, and {claimed:.6g} ms "
            "without one before it"
        )
    return ""


def _contradiction(witness: Witness, seen: Sequence[Repetition], allowance: Allowance) -> str:
    claimed = f"claimed {witness.claimed_ms:.6g} ms a call"
    if witness.unclaimed_ms > witness.allowed_ms:
        return (
            f"{claimed}; the judge's clock saw {witness.unclaimed_ms:.6g} ms more beside it than "
            f"with a submission that does nothing, allowed are {witness.allowed_ms:.6g} ms"
        )
    if witness.busy_us > allowance.busy_us:
        return f"{claimed}; the device was busy for another {witness.busy_us:.6g} us afterwards"
    if witness.floor_ms is not None and witness.claimed_ms < witness.floor_ms:
        return f"{claimed}; this device needs at least {witness.floor_ms:.6g} ms to move its data"
    for one in seen:
        if one.claimed_ms > one.seen_ms * _CLOCK_MARGIN:
            return (
                f"claimed {one.claimed_ms:.6g} ms for a call in a repetition that took "
                f"{one.seen_ms:.6g} ms by the judge's clock"
            )
    return ""
