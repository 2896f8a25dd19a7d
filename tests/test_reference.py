"""The reference against the recurrence, and the preprocessing against what it inverts."""

from __future__ import annotations

import importlib.util
from dataclasses import astuple, replace
from pathlib import Path

import pytest
import torch

from judge.case import Case
from judge.problem import Inputs, make_inputs
from reference.chunked import chunked_forward, float64_reference
from reference.emulation import bfloat16_forward
from reference.preprocess import chunk_cumsum_torch, gated_kkt_inverse_torch, preprocess_for
from reference.recurrence import recurrent_forward
from reference.torch_float32 import gdn_prefill_forward

CPU = torch.device("cpu")
BFLOAT16_ROUNDING = 2.0**-8  # relative error of rounding to nearest with 8 significant bits, x2
CASE = Case(
    name="plain",
    batch=1,
    tokens=130,
    qk_heads=1,
    v_heads=2,
    initial_state=1.0,
    gate="random_decay",
    gate_value=None,
    beta=None,
    equal_keys=False,
    zero_values=False,
    timed=False,
    tolerance=5e-3,
)
VARIANTS = [
    *({"tokens": tokens} for tokens in (1, 2, 63, 64, 65, 127, 128, 129, 200, 511, 512, 513)),
    {"tokens": 1025, "batch": 3, "qk_heads": 2, "v_heads": 6},
    {"tokens": 1025, "batch": 3, "qk_heads": 2, "v_heads": 6, "initial_state": None},
    {"tokens": 1087, "qk_heads": 2, "v_heads": 4, "gate": "hard_forget"},
    {"tokens": 577, "qk_heads": 2, "v_heads": 4, "gate": "no_decay"},
    {"qk_heads": 2, "v_heads": 2},
    {"qk_heads": 2, "v_heads": 6},
    {"qk_heads": 1, "v_heads": 8},
    {"batch": 3, "qk_heads": 2, "v_heads": 4},
    {"batch": 7, "tokens": 65, "qk_heads": 5, "v_heads": 15},
    {"batch": 3, "qk_heads": 2, "v_heads": 4, "initial_state": None},
    *({"gate": gate} for gate in ("mixed", "no_decay", "hard_forget")),
    {"gate": "constant", "gate_value": -0.02},
    {"gate": "constant", "gate_value": -1000.0},
    {"beta": 0.0},
    {"beta": 1.0, "gate": "no_decay"},
    {"equal_keys": True},
    {"equal_keys": True, "beta": 1.0, "gate": "no_decay"},
    {"zero_values": True},
    {"initial_state": 30.0, "gate": "no_decay"},
]


def named(changes: dict) -> str:
    """A test's name from what differs."""
    return "-".join(f"{key}={value}" for key, value in changes.items())


def drawn(changes: dict) -> Inputs:
    """Inputs of the plain case with these changes."""
    return make_inputs(replace(CASE, **changes), 42, CPU)


@pytest.mark.parametrize("changes", VARIANTS, ids=named)
def test_float64_reference_is_the_recurrence(changes: dict) -> None:
    inputs = drawn(changes)
    output, state = float64_reference(*astuple(inputs))
    expected_output, expected_state = recurrent_forward(*astuple(inputs))
    assert output.dtype == state.dtype == torch.float64
    scale = max(1.0, changes.get("initial_state") or 0.0)
    torch.testing.assert_close(output, expected_output, rtol=0, atol=1e-12 * scale)
    torch.testing.assert_close(state, expected_state, rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize("changes", VARIANTS, ids=named)
def test_forwards_from_the_preprocessing_are_near_the_recurrence(changes: dict) -> None:
    """Also that nothing overflows: assert_close fails on NaN and Inf."""
    inputs = drawn(changes)
    q, k, v, raw_g, beta, initial = astuple(inputs)
    g_cumsum, A = preprocess_for(CPU)(k, raw_g, beta)
    output, state = recurrent_forward(*astuple(inputs))
    # What rounding A and the operands once can do, generously; the tolerances are tested elsewhere.
    bound = 0.03 * max(1.0, changes.get("initial_state") or 0.0)
    for forward in (gdn_prefill_forward, bfloat16_forward):
        actual_output, actual_state = forward(q, k, v, g_cumsum, beta, A, initial)
        assert actual_output.dtype == torch.bfloat16
        assert actual_state.dtype == torch.float32
        torch.testing.assert_close(actual_output.double(), output, rtol=0.01, atol=bound)
        torch.testing.assert_close(actual_state.double(), state, rtol=0.01, atol=bound)


def test_the_recurrence_against_two_tokens_by_hand() -> None:
    """k₁ = e₀ writes β₁v₁; a second e₀ first decays, then erases a share β₂; q reads row 0."""
    q, k = torch.zeros(1, 2, 1, 128), torch.zeros(1, 2, 1, 128)
    q[..., 0], k[..., 0] = 1.0, 1.0
    v = torch.randn(1, 2, 1, 128, generator=torch.Generator().manual_seed(1))
    raw_g = torch.tensor([0.0, 0.5]).log().view(1, 2, 1)
    beta = torch.tensor([0.75, 0.25]).view(1, 2, 1)
    output, state = recurrent_forward(q, k, v, raw_g.nan_to_num(neginf=-1e4), beta, None)
    first = 0.75 * v[0, 0, 0].double()
    second = 0.5 * (1 - 0.25) * first + 0.25 * v[0, 1, 0].double()
    torch.testing.assert_close(output[0, 0, 0], first / 128**0.5)
    torch.testing.assert_close(output[0, 1, 0], second / 128**0.5)
    torch.testing.assert_close(state[0, 0, 0], second)
    assert (state[0, 0, 1:] == 0).all()


def test_the_callers_initial_state_is_left_alone() -> None:
    inputs = drawn({})
    before = inputs.initial_state.clone()
    g_cumsum, A = preprocess_for(CPU)(inputs.k, inputs.raw_g, inputs.beta)
    float64_reference(*astuple(inputs))
    double = inputs.initial_state.double()
    chunked_forward(
        inputs.q, inputs.k, inputs.v, g_cumsum, inputs.beta, A, double, dtype=torch.float64
    )
    assert torch.equal(inputs.initial_state, before)
    assert torch.equal(double, before.double())


@pytest.mark.parametrize("tokens", [1, 64, 65, 130])
def test_chunk_cumsum_restarts_at_every_chunk(tokens: int) -> None:
    raw_g = drawn({"tokens": tokens, "batch": 2}).raw_g
    actual = chunk_cumsum_torch(raw_g)
    assert actual.dtype == torch.float32
    running = torch.zeros(2, 2, dtype=torch.float64)
    for token in range(tokens):
        running = raw_g[:, token].double() + (0 if token % 64 == 0 else running)
        torch.testing.assert_close(actual[:, token].double(), running, rtol=2**-24, atol=0)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tokens": 1},
        {"tokens": 64},
        {"batch": 2, "qk_heads": 2, "v_heads": 6},
        {"gate": "hard_forget"},
        {"beta": 1.0, "gate": "no_decay"},
        {"equal_keys": True, "beta": 1.0, "gate": "no_decay"},
    ],
    ids=named,
)
def test_inverse_times_its_matrix_is_the_identity(changes: dict) -> None:
    """M is written out entry by entry from the lab's formula; A differs from M⁻¹ by one rounding.

    |A M − I| <= |A − M⁻¹| |M| entry by entry, and |A − M⁻¹| is a bfloat16 rounding of |A|.
    """
    inputs = drawn(changes)
    g_cumsum = chunk_cumsum_torch(inputs.raw_g)
    A = gated_kkt_inverse_torch(inputs.k, g_cumsum, inputs.beta)
    batch, tokens, heads = g_cumsum.shape
    assert A.shape == (batch, tokens, heads, 64)
    assert A.dtype == torch.bfloat16
    group = heads // inputs.k.shape[2]
    for b, head, start in (
        (b, h, s) for b in range(batch) for h in range(heads) for s in range(0, tokens, 64)
    ):
        length = min(64, tokens - start)
        rows = slice(start, start + length)
        k = inputs.k[b, rows, head // group].double()
        g, beta = g_cumsum[b, rows, head].double(), inputs.beta[b, rows, head].double()
        M = torch.eye(length, dtype=torch.float64)
        for i in range(length):
            for j in range(i):
                M[i, j] = beta[i] * (k[i] @ k[j]) * torch.exp(g[i] - g[j])
        block = A[b, rows, head].double()
        assert (block[:, length:] == 0).all()
        block = block[:, :length]
        bound = BFLOAT16_ROUNDING * (block.abs() @ M.abs()) + 1e-6
        assert ((block @ M - torch.eye(length)).abs() <= bound).all()


def test_preprocessing_into_given_tensors_is_the_same() -> None:
    inputs, preprocess = drawn({"tokens": 100}), preprocess_for(CPU)
    fresh = preprocess(inputs.k, inputs.raw_g, inputs.beta)
    given = tuple(torch.full_like(tensor, torch.nan) for tensor in fresh)
    returned = preprocess(inputs.k, inputs.raw_g, inputs.beta, given)
    assert all(a is b for a, b in zip(returned, given, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(fresh, given, strict=True))


def test_reference_does_not_know_the_judge() -> None:
    """Data flows one way: the judge may use the reference, never the other way round."""
    folder = Path(__file__).parent.parent / "reference"
    for file in folder.glob("*.py"):
        text = file.read_text()
        assert "from judge" not in text, file.name
        assert "import judge" not in text, file.name


def test_the_starter_is_near_the_recurrence() -> None:
    """It stands alone, so it is loaded by its path."""
    path = Path(__file__).parent.parent / "submissions/starter/tilelang_fwd.py"
    spec = importlib.util.spec_from_file_location("starter_under_test", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for changes in ({"batch": 2, "qk_heads": 2, "v_heads": 6}, {"initial_state": None}):
        inputs = drawn(changes)
        g_cumsum, A = preprocess_for(CPU)(inputs.k, inputs.raw_g, inputs.beta)
        output, state = module.gdn_prefill_forward(
            inputs.q, inputs.k, inputs.v, g_cumsum, inputs.beta, A, inputs.initial_state
        )
        expected_output, expected_state = recurrent_forward(*astuple(inputs))
        assert (output.dtype, state.dtype) == (torch.bfloat16, torch.float32)
        torch.testing.assert_close(output.double(), expected_output, rtol=5e-3, atol=5e-3)
        torch.testing.assert_close(state.double(), expected_state, rtol=5e-3, atol=5e-3)
