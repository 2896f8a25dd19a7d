"""Compile FlashQLA's kernels where there is no GPU, into the caches that its children load from.

    python scripts/compile_public.py [--suite public --suite hidden] [--sms 132 --sms 16 --sms 14]
        [--sweep] [--jobs N]

Needs nvcc and flash-qla 0.1.3. Each of FlashQLA's adapters (reference/baselines/) is called for
each case in a child that checks, with stand-in tensors on a stand-in Hopper device of each number
of SMs; what it would have launched is compiled for sm_90a, N kernels at a time. Carry
$GDN_JUDGE_CACHE to the GPU machine, which needs the same TileLang and the same target
(docs/check.md); there a kernel loads in hundredths of a second.

What is compiled, by FlashQLA's source. Every kernel is specialised on its heads (Hv, and Hq where
it reads k), dtypes and options; batch and tokens are symbolic. A case has a state or none, and its
batch is 1 (then laid out as one sequence of variable length, "varlen") or more (dense).

    kernel                      launched                        specialised on, beside dtypes
    chunk_local_cumsum          always                          Hv; varlen
    kkt_solve                   always                          Hv, Hq; varlen
    get_warmup_chunks           where a sequence is cut         Hv
    prepare_h                   where a sequence is cut         Hv, Hq
    correct_h0                  where a sequence is cut         Hv, state
    fused_chunk_gdr_fwd         always                          Hv, Hq, scale, varlen, cut, state
                                                                or cut, columns of V a block

What `core` prepares, cumsum and kkt_solve, is always dense. Whether a sequence is cut, and into how
many chunks a piece, is decided by a cost model from chunks, Hv and the number of SMs; columns (32,
64 or 128) from the number of pieces, Hv and SMs. The cost model can read the gates too, but neither
FlashQLA's own call nor the adapter hands them over: what is read back on the host are the bounds of
the sequences alone, which the shape gives. The gates decide inside prepare_h and correct_h0, by
numbers that get_warmup_chunks leaves on the device. So one dry call launches exactly the kernels
of any inputs of that shape, and the list is complete: another path is taken in training or with
options that the adapters do not set.

FLA's forward is Triton, which compiles at the first launch and wants a device (its TileLang kernels
are a backward pass, and other operators); FlashInfer's kernel is C++ (docs/baselines.md).
Exit status: 0 all compiled, 1 something not, 2 wrong usage.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from judge.caches import log_folder, submission_cache
from judge.case import Case
from judge.check_session import CheckFailure, CheckLimits, CheckSession
from judge.child.log import ChildLog
from judge.child.process import ChildOptions, default_memory_limit
from judge.home import cache_root
from judge.implementations import Implementation, public_implementations
from judge.profiles import PROFILES
from judge.sandbox.kinds import OFF
from judge.threads import available_cores
from scripts.sweep_shapes import shapes
from scripts.wanted_cases import suite_option, wanted_cases

IN_TILELANG = ("flash_qla",)
"""Public implementations whose kernels are TileLang's."""
DEVICE = PROFILES["h200"]
UNFINISHED = shutil.ignore_patterns("tmp", "lock", ".unfinished-*")
MIB = 2**20


@dataclass
class Tally:
    """What became of it: kernels by key, those that were compiled now, and what went wrong."""

    kernels: set[str]
    compiled: int
    problems: list[str]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@suite_option
@click.option(
    "--sms",
    "numbers",
    type=click.IntRange(min=1),
    multiple=True,
    default=(DEVICE.sms,),
    show_default=True,
    help="SMs that a run will have, as in `run.py --sms`; repeatable.",
)
@click.option("--sweep", is_flag=True, help="The shapes of sweep_shapes.py too.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=available_cores(),
    help="Kernels to compile at a time. Default: one for each core.",
)
def main(suite_names: tuple[str, ...], numbers: tuple[int, ...], sweep: bool, jobs: int) -> None:
    """Compile the TileLang kernels of public implementations ahead, without a GPU."""
    cases = wanted_cases(suite_names)
    if sweep:
        cases += shapes(("random_decay",))
    found = [one for one in public_implementations() if one.name in IN_TILELANG]
    if not found:
        raise click.UsageError("flash-qla is not installed: there is nothing to compile")
    raise SystemExit(0 if compile_all(found, cases, numbers, jobs) else 1)


def compile_all(
    implementations: Sequence[Implementation],
    cases: Sequence[Case],
    numbers: Sequence[int],
    jobs: int,
) -> bool:
    """Compile the kernels of each implementation for each number of SMs; whether all went well."""
    total, start = Tally(set(), 0, []), time.monotonic()
    for index, one in enumerate(implementations):
        for earlier in implementations[:index]:
            share_kernels(earlier, one)
        for sms in numbers:
            click.echo(f"{one.name} {one.version}, {one.scope}, {sms} SMs")
            compile_one(one, cases, sms, jobs, total)
        cache = submission_cache(one.submission.digest)
        size = sum(file.stat().st_size for file in cache.rglob("*") if file.is_file())
        click.echo(f"  {cache.relative_to(cache_root())}: {size / MIB:.1f} MiB")
    click.echo(
        f"{len(total.kernels)} kernels, {total.compiled} of them compiled now, "
        f"{len(total.problems)} problems, {time.monotonic() - start:.0f} s"
    )
    return not total.problems


def share_kernels(source: Implementation, target: Implementation) -> None:
    """Give one implementation what another has compiled: scopes of one library share kernels."""
    kept = submission_cache(source.submission.digest) / "tilelang"
    if kept.is_dir():
        goal = submission_cache(target.submission.digest) / "tilelang"
        shutil.copytree(kept, goal, dirs_exist_ok=True, ignore=UNFINISHED)


def compile_one(
    one: Implementation, cases: Sequence[Case], sms: int, jobs: int, total: Tally
) -> None:
    """Call one implementation for all cases on a device of so many SMs, then compile what it needs.

    What was compiled is kept however this ends. Unlike a submission's, kernels of hidden cases are
    kept as well: only the adapter's own content can reach them, and it prints nothing.
    """
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}-{one.submission.name}-{sms}.log"
    log = ChildLog(log_folder() / name)
    options = ChildOptions(
        device="cuda:0",
        visible_devices="",
        threads=jobs,
        memory_limit=default_memory_limit(),
        profile=replace(DEVICE, sms=sms),
        sandbox=OFF,
        inputs=one.inputs,
    )
    session = CheckSession(one.submission, options, CheckLimits(), log)
    try:
        names: dict[str, tuple[str, Case]] = {}
        for case in cases:
            for key, kernel in launched_by(session, case, total):
                names.setdefault(key, (kernel, case))
        keys = list(names)
        for number, key in enumerate(keys):
            kernel, case = names[key]
            line = f"  {number + 1}/{len(keys)} {kernel} ({case.name})"
            try:
                done = session.compile(key, keys[number + 1 :], case)
            except CheckFailure as failure:
                total.problems.append(failure.detail)
                click.echo(f"{line}: {failure.verdict}: {failure.detail}")
                continue
            if done.error:
                total.problems.append(done.error)
            else:
                total.kernels.add(key)
                total.compiled += not done.cached
            how = done.error or ("there already" if done.cached else f"{done.seconds:.1f} s")
            click.echo(f"{line}: {how}")
    finally:
        session.close()
        log.close()


def launched_by(session: CheckSession, case: Case, total: Tally) -> Iterator[tuple[str, str]]:
    """Keys and names of the kernels that the calls of a case launch."""
    try:
        checked = session.check(case)
    except CheckFailure as failure:
        problem = failure.detail
    else:
        problem = checked.problem
        yield from ((launch.kernel, launch.name) for launch in checked.launches)
    if problem:
        total.problems.append(f"{case.name}: {problem}")
        click.echo(f"  {case.name}: {problem}")


if __name__ == "__main__":
    main()
