"""Time one submission by the judge's two protocols and by a bare loop, in turns.

    python scripts/compare_timing.py --submission submissions/v01_gemm --csv OUT.csv

The bare loop is the lab's protocol and nothing else, in this process: inputs, preprocessing,
10 warm-up calls, 100 calls with CUDA events around each, median; on a quick core, as judged.
The three alternate, three times by default; the medians of their medians are compared, strict with
lab and lab with bare. Needs a CUDA device.
"""

from __future__ import annotations

import csv
import importlib
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from judge.audit import AUDITS, Answers, AuditSeeds, answers
from judge.caches import (
    ceilings_folder,
    compile_judge_kernels,
    compiler_variables,
    judge_kernels,
    submission_cache,
)
from judge.case import Case
from judge.child.cores import quickest_core
from judge.child.log import ChildLog
from judge.child.process import ChildOptions, default_memory_limit
from judge.device import DeviceError, child_view, choose_device, gpu_identity
from judge.floor import floor_ms, known_ceilings
from judge.problem import make_inputs
from judge.reference_run import null_submission
from judge.repetitions import Repetitions
from judge.sandbox.kinds import choose_sandbox
from judge.session import Session
from judge.strict_protocol import Terms
from judge.submission import ENTRY, find_submission
from judge.suites import load_suite
from judge.threads import available_cores
from judge.trial import Limits
from judge.verdict import Verdict
from judge.witness import ALLOWANCES
from reference.preprocess import Preprocess, preprocess_for

SEED = 42
COUNT = Repetitions(warmup=10, repetitions=100)
LONG_MS = 0.2
RELATIVE = 0.02
ABSOLUTE_MS = 0.003
PUBLIC = Path(__file__).resolve().parents[1] / "cases" / "public.yaml"
COLUMNS = (
    *("case", "strict_ms", "lab_ms", "bare_ms", "allowed_ms", "strict_lab", "lab_bare"),
    *("strict_within", "lab_within"),
)


@click.command()
@click.option("--submission", type=click.Path(path_type=Path), required=True)
@click.option("--case", "names", multiple=True, help="Default: all public cases.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, help="Default: 3.")
@click.option("--csv", "csv_path", type=click.Path(path_type=Path), help="Also write every median.")
def main(submission: Path, names: tuple[str, ...], rounds: int, csv_path: Path | None) -> None:
    """Print the three side by side; exit 1 where two of them differ by more than allowed."""
    try:
        device = choose_device("cuda")
    except DeviceError:
        raise click.UsageError("needs a CUDA device; there is none here") from None
    kernels = compile_judge_kernels()
    cases = [case for case in load_suite(PUBLIC).cases if not names or case.name in names]
    os.environ["TILELANG_CACHE_DIR"] = str(judge_kernels())
    preprocess = preprocess_for(device)
    os.environ.update(compiler_variables(submission_cache(find_submission(submission).digest)))
    bare = BareLoop(_import_function(submission), preprocess, device)
    rows: list[dict[str, str]] = []
    click.echo(" ".join(f"{column:>16}" for column in COLUMNS))
    with tempfile.TemporaryDirectory() as folder:
        log = ChildLog(Path(folder) / "log.txt")
        child, visible = child_view(device)
        options = ChildOptions(
            *(child, visible, available_cores(), default_memory_limit(), kernels),
            sandbox=choose_sandbox("auto"),
            gpu=gpu_identity(device),
        )
        found = find_submission(submission)
        lab, strict, null = (
            Session(one, options, Limits(), log, lambda phase: None, strict=is_strict)
            for one, is_strict in ((found, False), (found, True), (null_submission(), True))
        )
        judges = Judges(lab, strict, null)
        try:
            rows = [_compare(case, judges, bare, rounds) for case in cases]
        finally:
            judges.close()
            log.close()
    if csv_path:
        with csv_path.open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    sys.exit(any("no" in (row["strict_within"], row["lab_within"]) for row in rows))


@dataclass(frozen=True)
class Judges:
    """A session under each protocol, and one of the submission that does nothing."""

    lab: Session
    strict: Session
    null: Session

    def median_ms(self, session: Session, case: Case, known: Answers, terms: Terms) -> float:
        """Median of a judged case, in ms, while the other one's child is stopped."""
        for other in (self.lab, self.strict):
            other.pause(other is not session)
        result = session.judge("public", case, SEED, COUNT, known, terms)
        if result.timing is None or result.verdict is not Verdict.PASS:
            raise click.ClickException(f"{case.name}: {result.verdict}: {result.detail}")
        return result.timing.median_ms

    def close(self) -> None:
        """End the children."""
        for session in (self.lab, self.strict, self.null):
            session.pause(False)
            session.close()


@dataclass(frozen=True)
class BareLoop:
    """The lab's protocol and nothing else."""

    function: Callable[..., object]
    preprocess: Preprocess
    device: torch.device

    def median_ms(self, case: Case) -> float:
        """Median of the timed calls, in ms."""
        torch.cuda.empty_cache()
        inputs = make_inputs(case, SEED, self.device)
        g_cumsum, inverse = self.preprocess(inputs.k, inputs.raw_g, inputs.beta)
        q, k, v, beta, state = inputs.q, inputs.k, inputs.v, inputs.beta, inputs.initial_state
        function = self.function
        samples = []
        with quickest_core(self.device):
            for _ in range(COUNT.warmup):
                function(q, k, v, g_cumsum, beta, inverse, state)
            torch.cuda.synchronize()
            for _ in range(COUNT.repetitions):
                start = torch.cuda.Event(enable_timing=True)
                end = torch.cuda.Event(enable_timing=True)
                start.record()
                function(q, k, v, g_cumsum, beta, inverse, state)
                end.record()
                end.synchronize()
                samples.append(start.elapsed_time(end))
        return statistics.median(samples)


def _compare(case: Case, judges: Judges, bare: BareLoop, rounds: int) -> dict[str, str]:
    known = answers(case, SEED, AUDITS["cuda"], AuditSeeds(), bare.device)
    judges.null.prepare_to_repeat(case, SEED)
    floor = floor_ms(case, known_ceilings(ceilings_folder(), bare.device))
    terms = Terms(judges.null, ALLOWANCES["cuda"], floor, rehearsed=True, looped=True)
    medians: dict[str, list[float]] = {"strict": [], "lab": [], "bare": []}
    for _ in range(rounds):
        medians["strict"].append(judges.median_ms(judges.strict, case, known, terms))
        medians["lab"].append(judges.median_ms(judges.lab, case, known, terms))
        medians["bare"].append(bare.median_ms(case))
    strict_ms, lab_ms, bare_ms = (statistics.median(values) for values in medians.values())
    allowed = RELATIVE * bare_ms + (0 if bare_ms >= LONG_MS else ABSOLUTE_MS)
    figures = (strict_ms, lab_ms, bare_ms, allowed, strict_ms - lab_ms, lab_ms - bare_ms)
    within = ("yes" if abs(figures[place]) <= allowed else "no" for place in (4, 5))
    cells = [case.name, *(f"{figure:.6f}" for figure in figures), *within]
    row = dict(zip(COLUMNS, cells, strict=True))
    click.echo(" ".join(f"{cell:>16}" for cell in row.values()))
    return row | {
        f"{name}_{number}_ms": f"{median:.6f}"
        for name, values in medians.items()
        for number, median in enumerate(values, start=1)
    }


def _import_function(submission: Path) -> Callable[..., object]:
    sys.path.insert(0, str(submission))
    return importlib.import_module(ENTRY.removesuffix(".py")).gdn_prefill_forward


if __name__ == "__main__":
    main()
