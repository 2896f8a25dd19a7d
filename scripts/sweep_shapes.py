"""Time a submission and others over shapes that no case has, and look for a cliff.

    python scripts/sweep_shapes.py --submission submissions/champion \
        --against submissions/v14_cuda_graph --csv sweep.csv

Batch, tokens and heads from the smallest to the largest, as far as memory allows: 64 to 131,072
tokens, 1 to 256 chains (batch times value heads), under each gate asked for. All take turns on one
shape, in the lab's loop with fewer calls; where FlashQLA is installed, its whole forward too.
`ratio` is the submission's median over the fastest other one's. `difference` is the largest one
between its results and the first other's, in units of the tolerance, 5e-3, absolute and relative
(under no_decay 2.5e-2): two that are right differ by two units at most. Rows above the limits are
printed, and then the exit status is 1. Beside the CSV goes a JSON of the same name: when, where and
what was measured. `--tokens` makes one sweep of several runs. Needs a CUDA device. There FlashQLA
compiles for half a minute for each number of heads, unless `compile_public.py --sweep` has done it.
"""

from __future__ import annotations

import csv
import math
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import click
import msgspec
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from judge.audit import SURPRISE_TOLERANCE
from judge.case import Case
from judge.checking import tensor_error
from judge.child.calls import time_calls
from judge.child.cores import quickest_core
from judge.device import DeviceError, choose_device
from judge.implementations import FULL, Implementation, public_implementations
from judge.problem import Inputs, make_inputs
from judge.submission import SubmissionError, find_submission
from reference.preprocess import Preprocess
from scripts.in_process import Result, function_of, ready_to_call, run_now

SEED = 42
WARM_UP, CALLS = 5, 20
GATES = ("random_decay", "mixed", "no_decay", "hard_forget")
TOLERANCES = {"no_decay": SURPRISE_TOLERANCE}
TOLERANCE = 5e-3
MOST_RATIO, MOST_UNITS = 1.1, 2.0
TOKENS = (64, 256, 1024, 4096, 16384, 65536, 131072)
BATCHES_AND_HEADS = (
    *((1, 1, 1), (1, 1, 4), (1, 4, 4), (1, 2, 8), (1, 16, 16), (1, 8, 32), (1, 16, 64)),
    *((4, 1, 1), (4, 2, 8), (4, 16, 64), (16, 1, 1), (32, 2, 8)),
)
"""Batch, query heads and value heads."""
MOST_ROWS = 2**22  # of all chains together: 5 GB of inputs
PUBLIC = "flash_qla"


@dataclass(frozen=True)
class Contender:
    """Something to time: its name, and a call of it for inputs and what is made of them."""

    name: str
    call: Callable[[Inputs, torch.Tensor, torch.Tensor], Result]


@click.command()
@click.option("--submission", type=click.Path(path_type=Path), required=True)
@click.option("--against", type=click.Path(path_type=Path), multiple=True, required=True)
@click.option(
    "--gate",
    "gates",
    type=click.Choice(GATES),
    multiple=True,
    default=("random_decay",),
    show_default=True,
)
@click.option("--tokens", "some_tokens", type=int, multiple=True, help="Default: all.")
@click.option("--limit", type=float, default=MOST_RATIO, show_default=True)
@click.option("--csv", "csv_path", type=click.Path(path_type=Path), required=True)
def main(
    submission: Path,
    against: tuple[Path, ...],
    gates: tuple[str, ...],
    some_tokens: tuple[int, ...],
    limit: float,
    csv_path: Path,
) -> None:
    """Measure, write every median, print what lies above the limits."""
    cases = list(shapes(gates, some_tokens or TOKENS))
    try:
        for path in (submission, *against):
            find_submission(path)
    except SubmissionError as error:
        raise click.UsageError(str(error)) from None
    try:
        device = choose_device("cuda")
    except DeviceError:
        raise click.UsageError("needs a CUDA device; there is none here") from None
    with tempfile.TemporaryDirectory() as folder:
        found = [find_submission(path) for path in (submission, *against)]
        whole = [one.submission for one in public_implementations() if is_whole(one)]
        digests = [one.digest for one in (*found, *whole)]
        preprocess = ready_to_call(digests, Path(folder), device)
        contenders = [prepared(path) for path in (submission, *against)]
        contenders += [public(Path(one.path)) for one in whole]
        run = run_now(device, (submission, *against))
        csv_path.with_suffix(".json").write_bytes(msgspec.json.format(msgspec.json.encode(run)))
        sys.exit(sweep(contenders, preprocess, device, cases, limit, csv_path))


def sweep(
    contenders: list[Contender],
    preprocess: Preprocess,
    device: torch.device,
    cases: Sequence[Case],
    limit: float,
    csv_path: Path,
) -> bool:
    """Measure the shapes, each row written at once. Whether one is above a limit."""
    is_bad = False
    with csv_path.open("w", newline="") as file:
        writer = csv.writer(file)
        names = [f"{one.name}_ms" for one in contenders]
        writer.writerow(["batch", "tokens", "qk_heads", "v_heads", "gate", *names, *OUTCOME])
        for case in cases:
            inputs = make_inputs(case, SEED, device)
            g_cumsum, A = preprocess(inputs.k, inputs.raw_g, inputs.beta)
            results = [one.call(inputs, g_cumsum, A) for one in contenders[:2]]
            difference = largest_difference(*results, TOLERANCES.get(case.gate, TOLERANCE))
            medians = [median_ms(one, inputs, g_cumsum, A, device) for one in contenders]
            ratio = medians[0] / min(medians[1:])
            sizes = (case.batch, case.tokens, case.qk_heads, case.v_heads, case.gate)
            row = [*sizes, *(f"{ms:.4f}" for ms in medians), f"{ratio:.3f}", f"{difference:.3f}"]
            writer.writerow(row)
            file.flush()
            if ratio > limit or not difference <= MOST_UNITS:
                is_bad = True
                click.echo(" ".join(map(str, row)))
            del inputs, g_cumsum, A, results
            torch.cuda.empty_cache()
    return is_bad


OUTCOME = ("ratio", "difference")


def shapes(gates: Sequence[str], every_tokens: Sequence[int] = TOKENS) -> Iterator[Case]:
    """The shapes as cases, small ones first."""
    for gate, tokens, (batch, qk_heads, v_heads) in product(gates, every_tokens, BATCHES_AND_HEADS):
        if batch * tokens * v_heads <= MOST_ROWS:
            name = f"b{batch}_t{tokens}_q{qk_heads}_v{v_heads}_{gate}"
            sizes = (batch, tokens, qk_heads, v_heads)
            yield Case(name, *sizes, 1.0, gate, None, None, False, False, True, TOLERANCE)


def prepared(path: Path) -> Contender:
    """A submission, which takes prepared inputs."""
    function = function_of(path)

    def call(inputs: Inputs, g_cumsum: torch.Tensor, A: torch.Tensor) -> Result:
        rest = (g_cumsum, inputs.beta, A, inputs.initial_state)
        return function(inputs.q, inputs.k, inputs.v, *rest)

    return Contender(find_submission(path).name, call)


def is_whole(one: Implementation) -> bool:
    """Whether that is FlashQLA's whole forward."""
    return one.name == PUBLIC and one.scope == FULL


def public(path: Path) -> Contender:
    """A public whole forward, which takes raw inputs."""
    function = function_of(path)

    def call(inputs: Inputs, g_cumsum: torch.Tensor, A: torch.Tensor) -> Result:
        rest = (inputs.raw_g, inputs.beta, inputs.initial_state)
        return function(inputs.q, inputs.k, inputs.v, *rest)

    return Contender(f"{PUBLIC}_whole", call)


def median_ms(
    one: Contender,
    inputs: Inputs,
    g_cumsum: torch.Tensor,
    A: torch.Tensor,
    device: torch.device,
) -> float:
    """Median of timed calls, in ms."""
    with quickest_core(device):
        timed = time_calls(lambda: one.call(inputs, g_cumsum, A), WARM_UP, CALLS, device)
    return statistics.median(timed.samples_ms)


def largest_difference(one: Result, other: Result, tolerance: float) -> float:
    """The largest difference of output and state, in units; infinite where one is not finite."""
    if not all(tensor.isfinite().all() for tensor in (*one, *other)):
        return math.inf
    return max(
        tensor_error("", actual, expected.double(), tolerance).max_ratio
        for actual, expected in zip(one, other, strict=True)
    )


if __name__ == "__main__":
    main()
