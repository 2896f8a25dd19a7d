"""Tolerances: wide enough for honest bfloat16 arithmetic, narrow enough for real mistakes.

Chains (batch, value head) do not meet, so of a large case only the first batch's first query/key
head with its value heads is computed here: its inputs are the case's own, its errors are as long
in the making, and only the number of chains over which the maximum is taken is smaller.
docs/results/tolerances.csv has the maxima over all of them; the last test reads that.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import astuple
from functools import cache
from pathlib import Path

import pytest
import torch
from mistakes import MISTAKES, Call, Results, beta_twice, interleaved_heads

from judge.case import CHUNK, Case
from judge.problem import make_inputs
from judge.suites import load_suites
from reference.chunked import float64_reference
from reference.preprocess import preprocess_for
from scripts.measure_tolerances import (
    SEED,
    SUITES,
    Ratios,
    first_group,
    measure,
    ratio,
    restart_token,
)

ROOT = Path(__file__).parent.parent
CPU = torch.device("cpu")
ALL = {suite.name: suite for suite in load_suites(ROOT / f"cases/{name}.yaml" for name in SUITES)}
CORRECTNESS = ALL["correctness"].cases
TIMED = ALL["public"].cases + ALL["hidden"].cases
TIMED_SHAPES = {(case.batch, case.tokens, case.qk_heads, case.v_heads) for case in TIMED}
KEEPS_ALL = [
    case
    for case in CORRECTNESS
    if case.gate == "no_decay"
    and (case.batch, case.tokens, case.qk_heads, case.v_heads) in TIMED_SHAPES
]
SMALL_ROWS = 20_000  # batch · tokens · value heads up to which a case is computed whole
SMALL = [case for case in CORRECTNESS if case.batch * case.tokens * case.v_heads <= SMALL_ROWS]


def case_name(case: Case) -> str:
    """A test's name."""
    return case.name


@cache
def measured(case: Case) -> Ratios:
    """Ratios of the case, of its first group where it is large."""
    inputs = make_inputs(case, SEED, CPU)
    return measure(case, inputs if case in SMALL else first_group(case, inputs))


@pytest.mark.parametrize("case", CORRECTNESS, ids=case_name)
def test_honest_arithmetic_uses_less_than_half_the_tolerance(case: Case) -> None:
    ratios = measured(case)
    assert ratios.output < 0.5
    assert ratios.final_state < 0.5


@pytest.mark.parametrize("case", TIMED, ids=case_name)
def test_honest_arithmetic_passes_the_timed_cases_with_a_margin(case: Case) -> None:
    ratios = measured(case)
    assert ratios.output < 0.9
    assert ratios.final_state < 0.9


@pytest.mark.parametrize("case", KEEPS_ALL, ids=case_name)
def test_restarting_early_is_seen_on_every_timed_shape(case: Case) -> None:
    """Unless the sequence is too short for a restart to drop anything."""
    restart = measured(case).restart
    if restart_token(case.tokens) is None:
        assert case.tokens < 6 * CHUNK
        assert restart is None
    else:
        assert restart > 2


def test_restarting_early_passes_random_gates_unseen() -> None:
    """Why the suite has those cases: under random_decay the same kernel stays far below 1."""
    (deep,) = (case for case in TIMED if case.name == "deep_gva_state")
    assert measured(deep).restart < 0.5


@cache
def call_and_truth(case: Case) -> tuple[Call, Results]:
    """What a submission is called with, and the float64 results."""
    inputs = make_inputs(case, SEED, CPU)
    g_cumsum, A = preprocess_for(CPU)(inputs.k, inputs.raw_g, inputs.beta)
    call = Call(inputs.q, inputs.k, inputs.v, g_cumsum, inputs.beta, A, inputs.initial_state)
    return call, float64_reference(*astuple(inputs))


def seen(mistake: Callable[[Call], Results], case: Case) -> bool:
    """Whether the mistake leaves the case's tolerance."""
    call, truth = call_and_truth(case)
    results = zip(mistake(call), truth, strict=True)
    return any(ratio(actual, expected, case.tolerance) > 1 for actual, expected in results)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_every_mistake_fails_the_correctness_suite(mistake: Callable[[Call], Results]) -> None:
    assert any(seen(mistake, case) for case in SMALL)


@pytest.mark.parametrize("case", [c for c in SMALL if c.tolerance > 5e-3], ids=case_name)
def test_a_widened_tolerance_still_sees_mistakes(case: Case) -> None:
    assert seen(beta_twice, case) or seen(interleaved_heads, case)


def test_the_recorded_table_is_of_these_cases_and_shows_the_same() -> None:
    """scripts/measure_tolerances.py wrote it, over every chain of every case."""
    with (ROOT / "docs/results/tolerances.csv").open(newline="", encoding="utf-8") as file:
        rows = {(row["suite"], row["case"]): row for row in csv.DictReader(file)}
    cases = {(suite.name, case.name): case for suite in ALL.values() for case in suite.cases}
    assert rows.keys() == cases.keys()
    for key, case in cases.items():
        row = rows[key]
        assert float(row["tolerance"]) == case.tolerance, key
        limit = 0.5 if key[0] == "correctness" else 0.9
        assert float(row["output"]) < limit, key
        assert float(row["final_state"]) < limit, key
