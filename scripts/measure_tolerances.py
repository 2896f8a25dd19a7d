"""How much of its tolerance honest bfloat16 arithmetic uses in every case, and a forgetful kernel.

    python scripts/measure_tolerances.py docs/results/tolerances.csv

Ratios are the largest |actual − expected| / (tolerance · (1 + |expected|)) against the float64
reference at the lab's seed; above 1 is wrong. `restart` is a kernel that cuts the sequence into
SEGMENTS and starts each from a zero state EARLY_CHUNKS chunks before it; it is empty where the
sequence is too short for that to drop anything.
"""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from judge.case import CHUNK, Case  # noqa: E402
from judge.problem import Inputs, make_inputs  # noqa: E402
from judge.suites import load_suites  # noqa: E402
from reference.chunked import chunked_forward, float64_reference  # noqa: E402
from reference.emulation import bfloat16_forward  # noqa: E402
from reference.preprocess import preprocess_for  # noqa: E402

SUITES = ("public", "hidden", "correctness", "smoke")
SEED = 42
SEGMENTS = 8
EARLY_CHUNKS = 4


@dataclass(frozen=True)
class Ratios:
    """Largest errors of one case in units of its tolerance; restart None where nothing is cut."""

    output: float
    final_state: float
    restart: float | None


def measure(case: Case, inputs: Inputs) -> Ratios:
    """Ratios of the bfloat16 emulation and of the restarting kernel on these inputs of the case."""
    q, k, v, raw_g, beta, state = (getattr(inputs, field.name) for field in fields(Inputs))
    g_cumsum, A = preprocess_for(q.device)(k, raw_g, beta)
    output, final_state = float64_reference(q, k, v, raw_g, beta, state)
    emulated, emulated_state = bfloat16_forward(q, k, v, g_cumsum, beta, A, state)

    restart = None
    if (begin := restart_token(case.tokens)) is not None:
        first = begin + EARLY_CHUNKS * CHUNK
        late = (tensor[:, begin:] for tensor in (q, k, v, g_cumsum, beta, A))
        late_output, late_state = chunked_forward(*late, dtype=torch.float32)
        restart = max(
            ratio(late_output[:, first - begin :], output[:, first:], case.tolerance),
            ratio(late_state, final_state, case.tolerance),
        )
    return Ratios(
        ratio(emulated, output, case.tolerance),
        ratio(emulated_state, final_state, case.tolerance),
        restart,
    )


def restart_token(tokens: int) -> int | None:
    """Where the restarting kernel begins, from zero, to compute its last segment.

    None where that is the first token: it drops nothing then. Earlier segments err alike; the
    last one, which also gives the final state, stands for them.
    """
    chunks = -(-tokens // CHUNK)
    begin = chunks - -(-chunks // SEGMENTS) - EARLY_CHUNKS
    return begin * CHUNK if begin > 0 else None


def ratio(actual: torch.Tensor, expected: torch.Tensor, tolerance: float) -> float:
    """The largest |actual − expected| / (tolerance · (1 + |expected|))."""
    return ((actual - expected).abs() / (1 + expected.abs())).max().item() / tolerance


def first_group(case: Case, inputs: Inputs) -> Inputs:
    """Of the first batch the first query/key head with the value heads it serves.

    Each (batch, value head) is a chain of its own, so these come out as among all the others.
    """
    served = slice(case.v_heads // case.qk_heads)
    state = inputs.initial_state
    return replace(
        inputs,
        q=inputs.q[:1, :, :1],
        k=inputs.k[:1, :, :1],
        v=inputs.v[:1, :, served],
        raw_g=inputs.raw_g[:1, :, served],
        beta=inputs.beta[:1, :, served],
        initial_state=None if state is None else state[:1, served],
    )


def main() -> None:
    """Measure every case of every suite; print the table and write it where the argument says."""
    torch.set_num_threads(1)  # on a core that others use too, a second thread only waits
    names = ("suite", "case", "tolerance", *(field.name for field in fields(Ratios)))
    rows = [names]
    print(*names)
    for suite in load_suites(ROOT / "cases" / f"{name}.yaml" for name in SUITES):
        for case in suite.cases:
            ratios = measure(case, make_inputs(case, SEED, torch.device("cpu")))
            restart = "" if ratios.restart is None else f"{ratios.restart:.3g}"
            shown = (f"{ratios.output:.3f}", f"{ratios.final_state:.3f}", restart)
            rows.append((suite.name, case.name, f"{case.tolerance:g}", *shown))
            print(*rows[-1], flush=True)
    if len(sys.argv) > 1:
        with Path(sys.argv[1]).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
