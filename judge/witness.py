"""The judge's own clock against the times that a child claims."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from judge.record import Witness


@dataclass(frozen=True)
class Repetition:
    """One repetition, in milliseconds and microseconds.

    claimed_ms: the call, as the child timed it. seen_ms: by the judge's clock, from handing over
    the seed of new contents to having the digest of the result. busy_us: what the device still
    took from the stop event until it was idle, the copies of the result included.
    """

    claimed_ms: float
    seen_ms: float
    busy_us: float

    @property
    def rest_ms(self) -> float:
        """What the judge saw beside the call: renewal, digest, messages, idling."""
        return self.seen_ms - self.claimed_ms


@dataclass(frozen=True)
class Pair:
    """A timed repetition, and one of the null submission just before."""

    submission: Repetition
    null: Repetition

    @property
    def unclaimed_ms(self) -> float:
        """How much more the judge saw beside the submission's call than beside the null one."""
        return self.submission.rest_ms - self.null.rest_ms


@dataclass(frozen=True)
class Allowance:
    """How far clocks may differ without contradicting each other.

    pairs: how many are made. rest_ms, rest_share: what may be left unclaimed, fixed and as a share
    of the null submission's rest. apart_ms, apart_share: how much more may be claimed in a pair
    than elsewhere. busy_us: how much longer than after a call of the null submission the device
    may take until it is idle, which the host's own doing varies by tens of microseconds. cold_ms,
    cold_share: how much longer a call with new contents may take than one in the lab's loop.
    """

    pairs: int
    rest_ms: float
    rest_share: float
    apart_ms: float
    apart_share: float
    busy_us: float
    cold_ms: float
    cold_share: float


ALLOWANCES = {
    "cuda": Allowance(12, 0.2, 0.1, 0.05, 0.2, 100.0, 0.015, 0.02),
    "cpu": Allowance(1, 100.0, 3.0, math.inf, 0.0, 0.0, 0.0, 0.0),
}
"""Those of CUDA rest on honest submissions' figures (docs/measurements.md). On a CPU, whose times
are not official and whose cores others use too, only gross contradictions are refused."""

_FEW = 10
"""Of so few pairs the least unclaimed counts: on a busy CPU a few medians say little."""
_QUICKER_SHARE = 0.4
_QUIET_SHARE, _QUIET_MS = 1.25, 0.3
# Of a call, after which the judge's own steps find cold caches: of unclaimed and of busy time.
_LONG_SHARE, _LONG_BUSY_SHARE = 0.01, 0.001
_CHARGE_TOLD = 0.05
_CLOCK_MARGIN = 1.05  # two clocks, one of them the GPU's


def weigh(
    seen: Sequence[Repetition],
    pairs: Sequence[Pair],
    allowance: Allowance,
    floor_ms: float | None,
) -> tuple[Witness, str]:
    """The figures, and one line of evidence where they contradict the claimed times, else "".

    seen: the timed repetitions of a submission. floor_ms: the least that a call can take on this
    device, None where unknown.
    """
    typical = statistics.median if len(pairs) > _FEW else min
    null_rest = statistics.median(pair.null.rest_ms for pair in pairs)
    claimed = statistics.median(one.claimed_ms for one in seen)
    # In pairs both met the same machine; what a submission hides only elsewhere all show together.
    # The last one holds the score itself against the clock: where just under half of the claims
    # are forged and a few calls are skipped, most claims are low and yet most rests are in order.
    # Not at the median: where honest calls are of two kinds, it falls between them by chance.
    unclaimed = max(
        typical(pair.unclaimed_ms for pair in pairs),
        typical(one.rest_ms for one in seen) - null_rest,
        _quicker(one.seen_ms for one in seen) - null_rest - claimed,
    )
    witness = Witness(
        claimed_ms=claimed,
        paired_ms=statistics.median(pair.submission.claimed_ms for pair in pairs),
        seen_ms=statistics.median(pair.submission.seen_ms for pair in pairs),
        null_ms=statistics.median(pair.null.seen_ms for pair in pairs),
        unclaimed_ms=unclaimed,
        allowed_ms=allowance.rest_ms
        + allowance.rest_share * null_rest
        + _LONG_SHARE * statistics.median(pair.submission.claimed_ms for pair in pairs),
        busy_us=statistics.median(one.busy_us for one in seen)
        - statistics.median(pair.null.busy_us for pair in pairs),
        floor_ms=floor_ms,
    )
    return witness, _contradiction(witness, seen, allowance)


def _quicker(times_ms: Iterable[float]) -> float:
    """The time that only two fifths of these are below."""
    ordered = sorted(times_ms)
    return ordered[int(_QUICKER_SHARE * len(ordered))]


def charge_ms(claimed_ms: float, loop_ms: float, allowance: Allowance) -> float:
    """What is added to times of the lab's loop: as much as cold caches do not explain.

    claimed_ms: median of calls with new contents. loop_ms: of calls in the loop, whose contents
    repeat. A call that does less where they do gains no more than is allowed here.
    """
    cold_ms = allowance.cold_ms + allowance.cold_share * claimed_ms
    return max(0.0, claimed_ms - cold_ms - loop_ms)


def charge_note(witness: Witness | None) -> str:
    """A line about times that had to be made longer by more than a trifle, else empty.

    They are measured once more: the calls with new contents may have met a busy machine.
    """
    if witness is None or witness.charged_ms <= _CHARGE_TOLD * (witness.loop_ms or 0.0):
        return ""
    return (
        f"{witness.claimed_ms:.6g} ms a call with new contents, {witness.loop_ms:.6g} ms where "
        f"they repeat: {witness.charged_ms:.6g} ms are added"
    )


def below_floor(time_ms: float, floor_ms: float) -> str:
    """One line of evidence against a time that no call on this device takes."""
    return (
        f"claimed {time_ms:.6g} ms a call; this device needs at least {floor_ms:.6g} ms to move "
        "its data"
    )


def unquiet(nulls: Sequence[Repetition], quiet_ms: float | None) -> str:
    """One line where the null submission found the machine much busier than before the run.

    What a submission leaves running on the device slows its neighbour down, and would excuse as
    much time of its own. Nobody is accused: it can be another program's doing. nulls: repetitions
    of the null submission. quiet_ms: the rest of one while no submission had run, None where that
    was not measured.
    """
    rest = statistics.median(one.rest_ms for one in nulls)
    if quiet_ms is None or rest <= _QUIET_SHARE * quiet_ms + _QUIET_MS:
        return ""
    return (
        f"the machine was not quiet: a submission that does nothing took {rest:.6g} ms a "
        f"repetition, {quiet_ms:.6g} ms before; run this again with nothing beside it"
    )


def _contradiction(witness: Witness, seen: Sequence[Repetition], allowance: Allowance) -> str:
    claimed = f"claimed {witness.claimed_ms:.6g} ms a call"
    if witness.unclaimed_ms > witness.allowed_ms:
        return (
            f"{claimed}; the judge's clock saw {witness.unclaimed_ms:.6g} ms more beside it than "
            f"with a submission that does nothing, allowed are {witness.allowed_ms:.6g} ms"
        )
    slack = allowance.apart_ms + allowance.apart_share * witness.paired_ms
    if witness.paired_ms - witness.claimed_ms > slack:
        return (
            f"{claimed}, and {witness.paired_ms:.6g} ms where a submission that does nothing was "
            f"heard just before; at most {slack:.6g} ms lie between honest ones"
        )
    if witness.busy_us > allowance.busy_us + _LONG_BUSY_SHARE * witness.claimed_ms * 1e3:
        return f"{claimed}; the device was busy for another {witness.busy_us:.6g} us afterwards"
    if witness.floor_ms is not None and witness.claimed_ms < witness.floor_ms:
        return below_floor(witness.claimed_ms, witness.floor_ms)
    for one in seen:
        if one.claimed_ms > one.seen_ms * _CLOCK_MARGIN:
            return (
                f"claimed {one.claimed_ms:.6g} ms for a call in a repetition that took "
                f"{one.seen_ms:.6g} ms by the judge's clock"
            )
    return ""
