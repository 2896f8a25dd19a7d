"""Errors of honest kernels at fresh seeds, on which the audits' tolerance rests.

    python scripts/measure_audit_tolerance.py --submission submissions/v01_gemm --csv OUT.csv

Every timed case of the public and hidden suites, at seeds 1000, 1001, …: the largest error of
output and final_state in units of the case's tolerance. A Gumbel distribution, the limit law of
largest values, is fitted to each case's errors by its moments; the chance that an audit at
AUDIT_FACTOR times the tolerance fails an honest kernel follows, and that of a whole run. Needs a
CUDA device.
"""

from __future__ import annotations

import csv
import importlib
import math
import os
import statistics
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import click
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from judge.audit import AUDIT_FACTOR, AUDITS
from judge.caches import compile_judge_kernels, compiler_variables, judge_kernels, submission_cache
from judge.case import Case
from judge.checking import check_result
from judge.device import DeviceError, choose_device
from judge.problem import make_inputs
from judge.reference_run import expected_results
from judge.submission import ENTRY, find_submission
from judge.suites import load_suite
from reference.preprocess import preprocess_for

CASES = Path(__file__).resolve().parents[1] / "cases"
SUITES = ("public", "hidden")
FIRST_SEED = 1000
COLUMNS = ("submission", "suite", "case", "seed", "output_ratio", "final_state_ratio")
Row = tuple[str, str, str, int, float, float]


@click.command()
@click.option("--submission", type=click.Path(path_type=Path), multiple=True, required=True)
@click.option("--seeds", type=click.IntRange(min=2), default=50, help="Default: 50.")
@click.option("--jobs", type=click.IntRange(min=1), default=4, help="Processes. Default: 4.")
@click.option("--csv", "csv_path", type=click.Path(path_type=Path), required=True)
def main(submission: tuple[Path, ...], seeds: int, jobs: int, csv_path: Path) -> None:
    """Measure, write every error, print the chances of a false alarm."""
    try:
        choose_device("cuda")
    except DeviceError:
        raise click.UsageError("needs a CUDA device; there is none here") from None
    compile_judge_kernels()
    tasks = [
        (path, suite, case, seeds)
        for path in submission
        for suite in SUITES
        for case in load_suite(CASES / f"{suite}.yaml").cases
    ]
    rows: list[Row] = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for part in pool.map(measure, *zip(*tasks, strict=True)):
            rows.extend(part)
    with csv_path.open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    report(rows)


def measure(path: Path, suite: str, case: Case, seeds: int) -> list[Row]:
    """A submission's largest errors at every seed of one case."""
    torch.set_num_threads(1)
    device = torch.device("cuda")
    os.environ["TILELANG_CACHE_DIR"] = str(judge_kernels())
    preprocess = preprocess_for(device)
    os.environ.update(compiler_variables(submission_cache(find_submission(path).digest)))
    sys.path.insert(0, str(path))
    function = importlib.import_module(ENTRY.removesuffix(".py")).gdn_prefill_forward
    rows = []
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        (expected, _), *_ = expected_results([case], [seed], device)
        inputs = make_inputs(case, seed, device)
        g_cumsum, inverse = preprocess(inputs.k, inputs.raw_g, inputs.beta)
        output, state = function(
            inputs.q, inputs.k, inputs.v, g_cumsum, inputs.beta, inverse, inputs.initial_state
        )
        errors = check_result(output, state, expected, case.tolerance).errors
        rows.append((path.name, suite, case.name, seed, *(error.max_ratio for error in errors)))
    sys.path.remove(str(path))
    sys.modules.pop(ENTRY.removesuffix(".py"))
    return rows


def report(rows: list[Row]) -> None:
    """Print each case's errors and the chance of a false alarm, by case and in a whole run."""
    by_case: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        by_case[row[0], row[2]].append(row)
    chances: dict[str, float] = defaultdict(float)
    for (submission, case), some in by_case.items():
        for tensor, column in (("output", 4), ("final_state", 5)):
            ratios = [row[column] for row in some]
            chance = exceedance(ratios, AUDIT_FACTOR)
            chances[submission] += AUDITS["cuda"].fresh * chance
            click.echo(
                f"{submission} {case} {tensor}: median {statistics.median(ratios):.3f}, "
                f"largest {max(ratios):.3f} of {len(ratios)}, beyond {AUDIT_FACTOR}: {chance:.2g}"
            )
    for submission, chance in chances.items():
        click.echo(f"{submission}: a run of all timed cases raises a false alarm with {chance:.2g}")


def exceedance(sample: list[float], limit: float) -> float:
    """Chance that a value exceeds `limit`, by a Gumbel law with the sample's mean and deviation."""
    scale = statistics.stdev(sample) * math.sqrt(6) / math.pi
    location = statistics.mean(sample) - 0.5772156649 * scale
    return -math.expm1(-math.exp(-(limit - location) / scale))


if __name__ == "__main__":
    main()
