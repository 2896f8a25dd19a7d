"""What the champion is held to, and whether its raw files meet it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from judge.verdict import Verdict
from scripts.champion.raw import FEW_SMS, Raw, Shape, Times, times_of
from scripts.goal import UNKNOWN, Goal
from scripts.ladder.versions import FULL_SUITES, PUBLIC_SUITE
from scripts.sweep_shapes import MOST_RATIO, MOST_UNITS, shapes

MOST_HOST_MS = 0.012
MOST_MEAN_RATIO = 0.6
LEAST_SCORE = 118.0
AIMS_MS = {
    "short_tail_state": 0.020,
    "chain_equal": 0.080,
    "parallel_equal": 0.040,
    "parallel_gva": 0.040,
    "long_low_gva": 0.098,
    "batch_split_gva": 0.098,
    "wide_gva_state": 0.198,
    "deep_gva_state": 0.196,
}
"""GPU times; on the four large cases twice the floor."""


def goals(raw: Raw) -> Iterator[Goal]:
    """All demands, then the aims."""
    times = times_of(raw.public) if raw.public is not None else {}
    yield _right(raw)
    hosts = _by_case(times, lambda one: one.host)
    yield Goal(
        f"the host adds at most {MOST_HOST_MS:.3f} ms to a call",
        _worst(hosts, "{:.4f} ms"),
        _all(hosts, lambda ms: ms <= MOST_HOST_MS),
    )
    ratios = _by_case(times, lambda one: one.ratio)
    yield Goal(
        "faster than FlashQLA's core on every public case",
        _worst(ratios, "{:.2f} of its time"),
        _all(ratios, lambda ratio: ratio < 1),
    )
    mean = geometric_mean([ratio for _, ratio in ratios])
    yield Goal(
        f"at most {MOST_MEAN_RATIO:g} of FlashQLA's core in geometric mean",
        UNKNOWN if mean is None else f"{mean:.3f}",
        None if mean is None else mean <= MOST_MEAN_RATIO,
    )
    yield _score(raw)
    yield from _sweep(raw)
    for case, aim in AIMS_MS.items():
        gpu = times[case].gpu if case in times else None
        found = UNKNOWN if gpu is None else f"{gpu:.4f} ms"
        asked = f"{case} in {aim:.3f} ms of GPU time"
        yield Goal(asked, found, None if gpu is None else gpu <= aim, aim=True)


def geometric_mean(values: Sequence[float | None]) -> float | None:
    """None where there is nothing or something is missing."""
    if not values or None in values:
        return None
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def every_shape(raw: Raw) -> list[Shape]:
    """The rows of all sweeps."""
    return [shape for sweep in raw.sweeps for shape in sweep.shapes]


def missing_shapes(raw: Raw) -> int:
    """How many shapes no sweep has, of those that have one under some gate."""
    rows = every_shape(raw)
    there = {(one.batch, one.tokens, one.qk_heads, one.v_heads, one.gate) for one in rows}
    gates = dict.fromkeys(one.gate for one in rows)
    wanted = {
        (one.batch, one.tokens, one.qk_heads, one.v_heads, one.gate) for one in shapes(tuple(gates))
    }
    return len(wanted - there)


def _right(raw: Raw) -> Goal:
    asked = f"right on all cases of {', '.join(FULL_SUITES)}, under the strict protocol"
    record = raw.suites
    if record is None:
        return Goal(asked, UNKNOWN, None)
    complete = {suite.suite for suite in record.score.suites if suite.complete}
    missing = [suite for suite in FULL_SUITES if suite not in complete]
    failed = [one for one in record.results if one.verdict is not Verdict.PASS]
    told = [f"{one.case.name}: {one.verdict}" for one in failed]
    if record.protocol.name != "strict":
        told.append(f"{record.protocol.name} protocol")
    holds = False if told else None if missing else True
    if missing:
        told.append(f"not in full: {', '.join(missing)}")
    return Goal(asked, "; ".join(told) or f"all {len(record.results)}", holds)


def _score(raw: Raw) -> Goal:
    asked = f"a public score of {LEAST_SCORE:g} or more on {FEW_SMS} SMs, baselines live"
    score = public_score(raw)
    if raw.few is None or score is None:
        return Goal(asked, UNKNOWN, None)
    source = raw.few.baseline.source
    if source != "live":
        return Goal(asked, f"the baseline is {source}", False)
    return Goal(asked, f"{score:.2f}", score >= LEAST_SCORE)


def public_score(raw: Raw) -> float | None:
    """Of the record on few SMs; None where that is missing or has not all public cases."""
    for suite in raw.few.score.suites if raw.few is not None else ():
        if suite.suite == PUBLIC_SUITE and suite.complete:
            return suite.score
    return None


def _sweep(raw: Raw) -> Iterator[Goal]:
    rows = every_shape(raw)
    missing = missing_shapes(raw)
    more = f"; {missing} shapes {UNKNOWN}" if missing else ""
    for asked, limit, values in (
        (
            f"no shape above {MOST_RATIO:g} of the faster of v14 and FlashQLA",
            *(MOST_RATIO, [one.ratio for one in rows]),
        ),
        (
            f"no shape more than {MOST_UNITS:g} tolerances from v14",
            *(MOST_UNITS, [one.difference for one in rows]),
        ),
    ):
        if not rows:
            yield Goal(asked, UNKNOWN, None)
            continue
        above = [value for value in values if not value <= limit]
        found = f"{len(above)} of {len(rows)} are, the worst {max(values):.2f}{more}"
        yield Goal(asked, found, False if above else None if missing else True)
    if rows and not all("flash_qla_whole" in one.medians_ms for one in rows):
        yield Goal("FlashQLA is in the sweep", "not everywhere", None)


def _by_case(
    times: dict[str, Times], value: Callable[[Times], float | None]
) -> list[tuple[str, float | None]]:
    return [(case, value(times[case]) if case in times else None) for case in AIMS_MS]


def _all(values: Iterable[tuple[str, float | None]], fits: Callable[[float], bool]) -> bool | None:
    """Whether all fit; None where something is missing and the rest does."""
    listed = [value for _, value in values]
    if any(value is not None and not fits(value) for value in listed):
        return False
    return None if None in listed else True


def _worst(values: Sequence[tuple[str, float | None]], form: str) -> str:
    known = [(value, case) for case, value in values if value is not None]
    if not known:
        return UNKNOWN
    value, case = max(known)
    missing = len(values) - len(known)
    more = f"; {missing} cases {UNKNOWN}" if missing else ""
    return f"at most {form.format(value)} ({case}){more}"
