"""Time every version of the ladder, one record a version and SM budget.

    python run.py calibrate --output docs/results/h200/ladder/calibration.yaml
    python scripts/measure_ladder.py docs/results/h200/ladder \\
      --baseline docs/results/h200/ladder/calibration.yaml
    python scripts/measure_ladder.py docs/results/h200/ladder --sms 16 --sms 14
    python scripts/write_ladder.py docs/results/h200/ladder

Writes FOLDER/<version>-<SMs or all>.json, records as `run.py --output-format json` prints them, of
which two paths are shortened: the submission's to where it lies in the repository, the log's to its
name. What is there already is left alone, and each record is written as soon as it is finished, so
that a session that is cut off goes on with the same command. Needs a CUDA device.

All versions of a budget go through one `run.py grade`, into a store that is thrown away, because a
`run.py` for each would pay for its start every time: Python and the judge's imports, children, four
float64 references a case, the quiet machine, the baseline. Of the 18 s that v14's four cases took
in docs/results/h200/protocol_v14_strict_2bf10bd.json, 9 s lay outside its cases and 2.5 s in the
references. `grade` does these once a budget and starts the next version's child beside the one that
is judged; what it runs and times is the same. Kernels that `run.py check` has compiled, in
the cache that it names, are not compiled again.

All versions of a budget run on one device, since two H200s can differ by more than two versions do.
Several budgets may run side by side, each on a device (--device cuda:1) and on cores (taskset) of
its own.

On all SMs what was kept takes the public, hidden and correctness suites, experiments the public
one; with fewer SMs all take the public one. 14 SMs are the lab's slice, and are asked for as such
(--slice h800-mig-1g.10gb): those records hold the predicted times and scores too.

Exit status: 0 every version did what its docstring says, right or wrong, 1 one did not, 2 wrong
usage, 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from judge.record import from_json  # noqa: E402
from judge.text import plain  # noqa: E402
from scripts.grading import (  # noqa: E402
    ALL,
    INTERRUPTED,
    WRONG_USAGE,
    Entry,
    budget_options,
    grade_entries,
)
from scripts.ladder.versions import (  # noqa: E402
    FULL_SUITES,
    PUBLIC_SUITE,
    VERSIONS,
    Version,
    surprise,
)


@dataclass(frozen=True)
class Batch:
    """What one run of `grade` is asked for. budget: SMs, or all."""

    budget: str
    versions: Sequence[Version]
    suites: Sequence[str]

    def options(self, baseline: str, device: str) -> list[str]:
        """Of `run.py grade`, folder and store aside."""
        options = ["--baseline", baseline, "--device", device, *budget_options(self.budget)]
        return [*options, *(word for suite in self.suites for word in ("--suite", suite))]


def batches(
    folder: Path, budgets: Sequence[str], only: Sequence[str], suites: Sequence[str]
) -> Iterator[Batch]:
    """The runs that are due: of what was named, the versions without a record in `folder`."""
    for budget in budgets:
        due = [
            version
            for version in VERSIONS.values()
            if (not only or version.name in only)
            and not record_file(folder, version, budget).exists()
        ]
        if suites or budget != ALL:
            groups = [(due, suites or (PUBLIC_SUITE,))]
        else:
            groups = [
                ([version for version in due if version.kept], FULL_SUITES),
                ([version for version in due if not version.kept], (PUBLIC_SUITE,)),
            ]
        yield from (Batch(budget, group, asked) for group, asked in groups if group)


def record_file(folder: Path, version: Version, budget: str) -> Path:
    """Where a version's record under a budget lies."""
    return folder / f"{version.name}-{budget}.json"


def run_batch(batch: Batch, folder: Path, baseline: str, device: str) -> int:
    """Grade a batch; the exit status of `grade`, which has told why on standard error."""
    entries = [
        Entry(version.name, version.path, record_file(folder, version, batch.budget))
        for version in batch.versions
    ]
    return grade_entries(entries, batch.options(baseline, device), f"{batch.budget} SMs")


def outcome_lines(folder: Path, batch: Batch) -> Iterator[tuple[str, bool]]:
    """For each version of a batch a line, and whether it did what its docstring says."""
    for version in batch.versions:
        file = record_file(folder, version, batch.budget)
        if not file.exists():
            yield f"{version.name}, {batch.budget} SMs: no record", False
            continue
        problem = surprise(version, from_json(file.read_bytes()))
        told = plain(problem, 200) if problem else "as its docstring says"
        yield f"{version.name}, {batch.budget} SMs: {version.fate}: {told}", not problem


def _budget(context: click.Context, option: click.Parameter, values: Sequence[str]) -> list[str]:
    for value in values:
        if value != ALL and not (value.isdecimal() and int(value) > 0):
            raise click.BadParameter(f"{value!r} is neither a number of SMs nor {ALL}")
    return list(dict.fromkeys(str(int(value)) if value != ALL else ALL for value in values)) or [
        ALL
    ]


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--sms", "budgets", multiple=True, metavar="N|all", callback=_budget, help="Default: all."
)
@click.option("--only", multiple=True, type=click.Choice(list(VERSIONS)), metavar="NAME")
@click.option("--suite", "suites", multiple=True, metavar="NAME", help="For all versions.")
@click.option("--baseline", default="none", help="As for run.py. Default: none, so no scores.")
@click.option("--device", default="cuda:0", help="As for run.py. Default: cuda:0.")
def main(
    folder: Path,
    budgets: list[str],
    only: tuple[str, ...],
    suites: tuple[str, ...],
    baseline: str,
    device: str,
) -> None:
    """Grade what has no record in FOLDER yet; the module's docstring says how."""
    folder.mkdir(parents=True, exist_ok=True)
    fine = True
    for batch in batches(folder, budgets, only, suites):
        status = run_batch(batch, folder, baseline, device)
        if status in (WRONG_USAGE, INTERRUPTED):
            sys.exit(status)
        for line, expected in outcome_lines(folder, batch):
            click.echo(line)
            fine = fine and expected
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
