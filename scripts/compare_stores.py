"""How far the medians of runs of `grade` lie apart: of two like runs, and of other ones.

    python scripts/compare_stores.py LIKE_1 LIKE_2 OTHER... [--csv FILE]

Each store holds one run over the same submissions and cases. The two like ones, such as a lane on
each of two GPUs, say how far medians lie apart by themselves; every other one, such as both lanes
at once, is compared with the first. Of each pair: how many medians both have, and the median, the
90th percentile and the largest of |a / b - 1|, and of |a - b| in microseconds. What one of them
did not pass, or was of other content, is left out and counted. An other run is as close where the
median of its shares and their 90th percentile are at most 1.5 times those of the two like ones:
of runs of one kind, one pair lies farther apart than the other. --csv FILE: every median.
Exit status: 0 all others are as close, 1 one is not, 2 wrong usage.
"""

from __future__ import annotations

import csv
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from judge.store.schema import StoreError
from judge.store.store import Store
from judge.verdict import Verdict

MARGIN = 1.5
"""Runs of one kind differ too: a pair of them may lie so many times as far apart as another one."""

Key = tuple[str, str, str, str]
"""Participant, digest of the submission, suite and case."""
Medians = Mapping[Key, float | None]


@dataclass(frozen=True)
class Difference:
    """Of two runs. shares: |a / b - 1|. microseconds: |a - b|. left_out: medians of one alone."""

    shares: list[float]
    microseconds: list[float]
    left_out: int

    def figures(self) -> tuple[float, float, float, float]:
        """Median and 90th percentile of the shares, then of the microseconds."""
        return (
            *(statistics.median(self.shares), percentile_90(self.shares)),
            *(statistics.median(self.microseconds), percentile_90(self.microseconds)),
        )

    def is_as_close_as(self, other: Difference) -> bool:
        """Whether the shares' median and 90th percentile are at most MARGIN times the other's."""
        pairs = zip(self.figures()[:2], other.figures()[:2], strict=True)
        return all(a <= MARGIN * b for a, b in pairs)


def percentile_90(values: Sequence[float]) -> float:
    """The value that at most a tenth of these are above."""
    ordered = sorted(values)
    return ordered[-1 - len(ordered) // 10]


def difference(a: Medians, b: Medians) -> Difference:
    """Of all medians that both have, in ms. Raises ValueError where there is none."""
    keys = [key for key in a if a[key] is not None and b.get(key) is not None]
    if not keys:
        raise ValueError("no submission passed a timed case in both")
    known = {key for medians in (a, b) for key, value in medians.items() if value is not None}
    return Difference(
        [abs(a[key] / b[key] - 1) for key in keys],
        [1e3 * abs(a[key] - b[key]) for key in keys],
        len(known) - len(keys),
    )


def medians_of(path: Path) -> dict[Key, float | None]:
    """Of every result that counts, in ms; None where a case was not passed. Raises StoreError."""
    with Store(path, must_exist=True) as store:
        return {
            (
                *(graded.participant, graded.record.submission.digest),
                *(result.suite, result.case.name),
            ): result.timing.median_ms if result.verdict is Verdict.PASS and result.timing else None
            for graded in store.results()
            for result in graded.record.results
            if result.case.timed
        }


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("stores", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Also every median.")
def main(stores: tuple[Path, ...], csv_file: Path | None) -> None:
    """Compare the medians of the runs in STORES; the first two are of one kind."""
    if len(stores) < 3:
        raise click.UsageError("name three stores or more: two like ones, then others")
    try:
        runs = [medians_of(store) for store in stores]
        pairs = [difference(runs[0], other) for other in runs[1:]]
    except (StoreError, ValueError) as error:
        raise click.UsageError(str(error)) from None
    click.echo(f"{'pair':40} medians left out  share median    p90    max  us median    p90    max")
    for store, pair in zip(stores[1:], pairs, strict=True):
        shares, microseconds = pair.shares, pair.microseconds
        middle, high, middle_us, high_us = pair.figures()
        click.echo(
            f"{f'{stores[0].stem}, {store.stem}':40} {len(shares):7} {pair.left_out:8} "
            f"{middle:13.2%} {high:6.2%} {max(shares):6.2%} "
            f"{middle_us:10.1f} {high_us:6.1f} {max(microseconds):6.1f}"
        )
    if csv_file is not None:
        _write(csv_file, stores, runs)
    raise SystemExit(0 if all(pair.is_as_close_as(pairs[0]) for pair in pairs[1:]) else 1)


def _write(file: Path, stores: Sequence[Path], runs: Sequence[Medians]) -> None:
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        names = ["participant", "digest", "suite", "case"]
        writer.writerow([*names, *(f"{store.stem}_ms" for store in stores)])
        for key in dict.fromkeys(key for run in runs for key in run):
            medians = [run.get(key) for run in runs]
            writer.writerow([*key, *("" if one is None else f"{one:.6f}" for one in medians)])


if __name__ == "__main__":
    main()
