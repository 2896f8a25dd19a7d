"""Median, percentiles and spread of samples, by hand-computed values."""

from __future__ import annotations

import math

import pytest

from judge.timing import summarize


def test_statistics_of_eleven_samples_in_any_order() -> None:
    samples = [11.0, 1.0, 2.0, 3.0, 4.0, 6.0, 5.0, 7.0, 8.0, 9.0, 10.0]
    timing = summarize(samples)
    assert timing.samples_ms == samples
    assert (timing.median_ms, timing.min_ms) == (6.0, 1.0)
    # Ranks 0.1 · 10 = 1 and 0.9 · 10 = 9, counted from 0.
    assert (timing.p10_ms, timing.p90_ms) == (2.0, 10.0)
    assert timing.spread == pytest.approx(8 / 6)


def test_even_count_and_interpolation() -> None:
    timing = summarize([4.0, 1.0, 3.0, 2.0])
    assert timing.median_ms == 2.5
    # Ranks 0.3 and 2.7.
    assert timing.p10_ms == pytest.approx(1.3)
    assert timing.p90_ms == pytest.approx(3.7)


def test_one_sample_has_no_spread() -> None:
    timing = summarize([0.25])
    assert (timing.median_ms, timing.min_ms, timing.p10_ms, timing.p90_ms) == (0.25,) * 4
    assert timing.spread == 0.0


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        ([], "no timing samples"),
        ([1.0, math.nan], "sample 1 is nan"),
        ([math.inf], "sample 0 is inf"),
        ([0.0], "sample 0 is 0.0"),
        ([1.0, 2.0, -1.0], "sample 2 is -1.0"),
    ],
)
def test_what_is_no_timing_is_refused(samples: list[float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        summarize(samples)
