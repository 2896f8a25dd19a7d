"""Statistics of the timed calls of one case."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from judge.record import Timing

SHORTEST_MS = 1e-9
LONGEST_MS = 1e9


def summarize(samples_ms: Sequence[float]) -> Timing:
    """Median, minimum, p10, p90 and spread of samples in milliseconds, kept in their order.

    The median is the lab's (mean of the middle two for an even count). Percentiles interpolate
    linearly between order statistics: the q-quantile of n samples lies at rank q · (n − 1).

    Raises ValueError where there is no sample, or one is no call's time.
    """
    samples = [float(sample) for sample in samples_ms]
    if not samples:
        raise ValueError("no timing samples")
    for index, sample in enumerate(samples):
        if not SHORTEST_MS <= sample <= LONGEST_MS:
            raise ValueError(f"timing sample {index} is {sample} ms, which is no call's time")
    ordered = sorted(samples)
    median = statistics.median(ordered)
    p10, p90 = _quantile(ordered, 0.1), _quantile(ordered, 0.9)
    return Timing(
        samples_ms=samples,
        median_ms=median,
        min_ms=ordered[0],
        p10_ms=p10,
        p90_ms=p90,
        spread=(p90 - p10) / median,
    )


def _quantile(ordered: Sequence[float], q: float) -> float:
    rank = q * (len(ordered) - 1)
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (rank - low) * (ordered[high] - ordered[low])
