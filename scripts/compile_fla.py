"""Compile and tune FLA's Triton kernels on a GPU, into the cache that its children load from.

    python scripts/compile_fla.py [--suite public --suite hidden] [--jobs N] [--device cuda:0]

At its first call with new head counts FLA compiles every configuration of five kernels, one after
the other, and times them. Here processes beside each other compile what one would: SHARES of them
call the forward of a case, and each hands only its share of the configurations to Triton's
autotuner. The times that they take disturb each other and are thrown away. Then one process alone
calls the forward for every case, finds all compiled, times it, and Triton keeps its choice beside
the kernels.

So the choice is made on the whole device, and a run on fewer SMs (`run.py --sms`) takes it over:
Triton's key holds no number of SMs. Delete submissions/<digest>/*/triton in $GDN_JUDGE_CACHE, and
FLA tunes on what it gets.

Needs a CUDA device, Triton as PyTorch brings it, and fla-core. Kernels of hidden cases are kept as
well, as scripts/compile_public.py does, and for its reason.
Exit status: 0 all compiled, 1 a case failed, 2 wrong usage.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import click
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from judge.caches import compiler_variables, submission_cache
from judge.case import Case
from judge.child.arguments import InputForm
from judge.device import DeviceError, choose_device, gpu_identity
from judge.gpu_lock import LockError, gpu_lock
from judge.implementations import public_implementations
from judge.problem import draw_inputs
from judge.text import plain
from judge.threads import available_cores
from scripts.wanted_cases import suite_option, wanted_cases

NAME = "fla"
SHARES = 2
KEEPS_CHOICES = "FLA_CACHE_RESULTS"
NEVER = float("inf")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@suite_option
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=available_cores(),
    help="Processes that compile. Default: one for each core.",
)
@click.option("--device", "device_name", default="cuda:0", help="As for run.py. Default: cuda:0.")
def main(suite_names: tuple[str, ...], jobs: int, device_name: str) -> None:
    """Compile and tune FLA's kernels before a run needs them."""
    cases = wanted_cases(suite_names)
    found = [one for one in public_implementations() if one.name == NAME]
    if not found:
        raise click.UsageError("fla-core is not installed: there is nothing to compile")
    try:
        device = choose_device(device_name)
    except DeviceError:
        device = torch.device("cpu")
    if device.type != "cuda":
        raise click.UsageError(f"needs a CUDA device; {device_name} is none")
    cache = submission_cache(found[0].submission.digest)
    cache.mkdir(parents=True, exist_ok=True)
    os.environ.update(compiler_variables(cache))  # for the processes; nothing is compiled here
    try:
        with gpu_lock(gpu_identity(device), lambda text: click.echo(text, err=True)):
            fine = compile_and_tune(cases, jobs, str(device))
    except LockError as error:
        raise click.ClickException(str(error)) from None
    raise SystemExit(0 if fine else 1)


def compile_and_tune(cases: Sequence[Case], jobs: int, device: str) -> bool:
    """Compile beside each other, then tune alone. Whether all went well; prints a line a call."""
    fine = True
    for keep, workers in ((False, min(jobs, SHARES * len(cases))), (True, 1)):
        os.environ[KEEPS_CHOICES] = str(int(keep))
        shares = 1 if keep else SHARES
        context = multiprocessing.get_context("spawn")
        # a process's own autotuner would take a choice over from the share before
        tasks = None if keep else 1
        with ProcessPoolExecutor(workers, mp_context=context, max_tasks_per_child=tasks) as pool:
            calls = {
                pool.submit(call_with_share, case, share, shares, device): (case, share)
                for case, share in itertools.product(cases, range(shares))
            }
            for call in as_completed(calls):
                case, share = calls[call]
                label = f"{'tuned' if keep else 'compiled'} {case.name} {share + 1}/{shares}"
                if error := call.exception():
                    fine = False
                    click.echo(f"{label}: {type(error).__name__}: {plain(str(error), 200)}")
                else:
                    click.echo(f"{label}: {call.result():.1f} s")
    return fine


def call_with_share(case: Case, share: int, shares: int, device: str) -> float:
    """Call FLA's whole forward once with every `shares`-th configuration; seconds.

    Runs in a process of its own. What Triton raises passes through.
    """
    from triton.runtime.autotuner import Autotuner

    from reference.baselines.fla_triton import gdn_prefill_forward

    generator = torch.Generator(device).manual_seed(0)
    inputs = draw_inputs(case, generator)
    arguments = [getattr(inputs, name) for name in InputForm.RAW.names]
    numbers: defaultdict[Autotuner, Iterator[int]] = defaultdict(itertools.count)
    times_one = Autotuner._bench

    def times_own(tuner: Autotuner, *values: object, **options: object) -> Sequence[float]:
        mine = next(numbers[tuner]) % shares == share
        # three quantiles of its time; a list, as Triton compares it with those of others
        return times_one(tuner, *values, **options) if mine else [NEVER] * 3

    start = time.monotonic()
    Autotuner._bench = times_own
    try:
        gdn_prefill_forward(*arguments)
        torch.cuda.synchronize(device)
    finally:
        Autotuner._bench = times_one
    return time.monotonic() - start


if __name__ == "__main__":
    main()
