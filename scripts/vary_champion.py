"""Time the champion with one idea changed at a time: what each is worth, and which are to be had.

    python scripts/vary_champion.py --compile                  # needs nvcc, no GPU
    python scripts/vary_champion.py --json OUT.json            # needs a CUDA device

The variants stand in scripts/champion/variants.py. All of them are called in turns on one case: the
untimed call is compared with the float64 reference, then each has its 20 calls in the lab's loop,
three times over. The times are medians of all calls, host cost included, the same for all: each
replays a graph. Kernels that `--compile` made are kept where `run.py check` keeps a submission's,
in $GDN_JUDGE_CACHE if that is set, and serve on a GPU machine with the same target variables
(docs/check.md).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import msgspec
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from judge.case import Case
from judge.checking import check_result
from judge.child.calls import time_calls
from judge.child.cores import quickest_core
from judge.device import DeviceError, choose_device
from judge.problem import make_inputs
from judge.reference_run import expected_results
from judge.submission import ENTRY, find_submission
from judge.suites import load_suite
from judge.timing import summarize
from reference.preprocess import Preprocess
from scripts.champion.outcomes import UNCHANGED, Change, Outcome, Outcomes
from scripts.champion.variants import VARIANTS, source_of
from scripts.in_process import Result, function_of, ready_to_call, run_now

ROOT = Path(__file__).resolve().parents[1]
CHAMPION = ROOT / "submissions" / "champion" / ENTRY
SEED = 42
ROUNDS, WARM_UP, CALLS = 3, 5, 20


@click.command()
@click.option("--case", "names", multiple=True, help="Default: all public cases.")
@click.option("--only", multiple=True, help="Variants, by name. Default: all.")
@click.option("--compile", "only_compile", is_flag=True, help="Compile all, and run nothing.")
@click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path),
    help="Write every sample, after each case.",
)
def main(
    names: tuple[str, ...], only: tuple[str, ...], only_compile: bool, json_path: Path | None
) -> None:
    """Measure the variants and print them beside the champion."""
    known = [one.name for one in VARIANTS]
    if unknown := [name for name in only if name not in known]:
        raise click.UsageError(f"--only {unknown[0]}: use one of {', '.join(known)}")
    public = load_suite(ROOT / "cases" / "public.yaml").cases
    if unknown := [name for name in names if name not in {case.name for case in public}]:
        listed = ", ".join(case.name for case in public)
        raise click.UsageError(f"--case {unknown[0]}: use one of {listed}")
    with tempfile.TemporaryDirectory() as folder:
        paths = written(Path(folder), only)
        if only_compile:
            compile_all(list(paths.values()))
            return
        try:
            device = choose_device("cuda")
        except DeviceError:
            raise click.UsageError("needs a CUDA device; there is none here") from None
        cases = [case for case in public if not names or case.name in names]
        digests = [find_submission(path).digest for path in paths.values()]
        preprocess = ready_to_call(digests, Path(folder) / "cache", device)
        functions = {name: function_of(path) for name, path in paths.items()}
        changes = [Change(one.name, one.text, one.off) for one in VARIANTS]
        record = Outcomes(run_now(device, [CHAMPION.parent]), changes, [])
        for case in cases:
            record.outcomes += measured(case, functions, preprocess, device)
            if json_path is not None:
                json_path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1))


def written(folder: Path, only: tuple[str, ...]) -> dict[str, Path]:
    """Folders of the champion and its variants, by name."""
    champion = CHAMPION.read_text()
    sources = {UNCHANGED: champion}
    sources |= {
        one.name: source_of(one, champion) for one in VARIANTS if not only or one.name in only
    }
    paths = {}
    for name, source in sources.items():
        paths[name] = folder / f"variant_{name}"
        paths[name].mkdir()
        (paths[name] / ENTRY).write_text(source)
    return paths


def compile_all(paths: list[Path]) -> None:
    """Let `run.py check` compile each; exit 1 where one does not compile."""
    failed = []
    for path in paths:
        words = [str(path), "--suite", "public", "--profile", "h200"]
        done = subprocess.run([sys.executable, str(ROOT / "run.py"), "check", *words], check=False)
        failed += [path.name] * (done.returncode != 0)
    sys.exit(bool(failed))


def measured(
    case: Case,
    functions: dict[str, Callable[..., Result]],
    preprocess: Preprocess,
    device: torch.device,
) -> list[Outcome]:
    """All variants on one case, in turns."""
    inputs = make_inputs(case, SEED, device)
    g_cumsum, A = preprocess(inputs.k, inputs.raw_g, inputs.beta)
    arguments = (inputs.q, inputs.k, inputs.v, g_cumsum, inputs.beta, A, inputs.initial_state)
    ((expected, _),) = expected_results([case], [SEED], device)
    samples: dict[str, list[float]] = {name: [] for name in functions}
    errors = {
        name: check_result(*function(*arguments), expected, case.tolerance)
        for name, function in functions.items()
    }
    del expected
    for _ in range(ROUNDS):
        for name, function in functions.items():
            call = partial(function, *arguments)
            with quickest_core(device):
                samples[name] += time_calls(call, WARM_UP, CALLS, device).samples_ms
    outcomes = []
    for name, times in samples.items():
        timing = summarize(times)
        verdict, ratios = errors[name].verdict, [one.max_ratio for one in errors[name].errors]
        outcomes.append(
            Outcome(case.name, name, verdict, timing.median_ms, timing.spread, ratios, times)
        )
    champion = outcomes[0].median_ms
    for one in outcomes:
        click.echo(
            f"{case.name:>18} {one.variant:>20} {one.median_ms:9.4f} ms {one.spread:6.1%} "
            f"{one.median_ms / champion:6.3f}  {one.verdict} "
            f"{' '.join(f'{error:.3f}' for error in one.errors)}"
        )
    return outcomes


if __name__ == "__main__":
    main()
