"""Inputs: the lab's draws to the bit, and overrides that touch nothing else."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
import torch

from judge.case import Case
from judge.problem import Inputs, make_inputs

CPU = torch.device("cpu")
CASE = Case(
    name="plain",
    batch=2,
    tokens=131,
    qk_heads=2,
    v_heads=6,
    initial_state=1.0,
    gate="random_decay",
    gate_value=None,
    beta=None,
    equal_keys=False,
    zero_values=False,
    timed=False,
    tolerance=5e-3,
)
NAMES = [field.name for field in fields(Inputs)]


def restated(case: Case, seed: int, device: torch.device) -> Inputs:
    """The lab's draws, restated without its helper functions.

    Its definition: L2 norms no smaller than 1e-12, in float32; log σ(x) by torch; a sixteenth of
    it, which is exact; even tokens of a mixed gate are 0; a state is drawn only where there is one.
    """
    generator = torch.Generator(device)
    generator.manual_seed(seed)
    batch, tokens, qk, heads = case.batch, case.tokens, case.qk_heads, case.v_heads

    def draw(size: list[int]) -> torch.Tensor:
        return torch.empty(size, device=device).normal_(generator=generator)

    def unit(x: torch.Tensor) -> torch.Tensor:
        norms = torch.linalg.vector_norm(x, dim=3, keepdim=True)
        return (x / torch.where(norms < 1e-12, 1e-12, norms)).bfloat16()

    q = unit(draw([batch, tokens, qk, 128]))
    k = unit(draw([batch, tokens, qk, 128]))
    v = draw([batch, tokens, heads, 128]).bfloat16()
    raw_g = torch.nn.LogSigmoid()(draw([batch, tokens, heads])) * 0.0625
    if case.gate == "mixed":
        even = torch.arange(tokens, device=device) % 2 == 0
        raw_g = torch.where(even[None, :, None], 0.0, raw_g)
    beta = torch.nn.Sigmoid()(draw([batch, tokens, heads]))
    state = None if case.initial_state is None else draw([batch, heads, 128, 128])
    return Inputs(q, k, v, raw_g, beta, state)


def same_bits(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    """Both None, or of one dtype and shape with the same bytes."""
    if a is None or b is None:
        return a is b
    integers = {torch.bfloat16: torch.int16, torch.float32: torch.int32}[a.dtype]
    return a.dtype == b.dtype and torch.equal(a.view(integers), b.view(integers))


def devices() -> list[object]:
    """The CPU, and the GPU where there is one."""
    no_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
    return ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, no_gpu])]


@pytest.mark.parametrize("device", devices())
@pytest.mark.parametrize("seed", [42, 7])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"gate": "mixed"},
        {"initial_state": None},
        {"batch": 1, "tokens": 1, "qk_heads": 1, "v_heads": 1},
    ],
)
def test_same_bits_as_the_labs_draws(changes: dict, seed: int, device: str) -> None:
    case = replace(CASE, **changes)
    drawn = make_inputs(case, seed, torch.device(device))
    expected = restated(case, seed, torch.device(device))
    for name in NAMES:
        assert same_bits(getattr(drawn, name), getattr(expected, name)), name


def test_reproducible_whatever_was_drawn_before() -> None:
    first = make_inputs(CASE, 42, CPU)
    torch.randn(5)
    second = make_inputs(CASE, 42, CPU)
    other = make_inputs(CASE, 43, CPU)
    for name in NAMES:
        assert same_bits(getattr(first, name), getattr(second, name)), name
        assert not torch.equal(getattr(first, name), getattr(other, name)), name


@pytest.mark.parametrize(
    ("changes", "touched"),
    [
        ({"gate": "mixed"}, "raw_g"),
        ({"gate": "no_decay"}, "raw_g"),
        ({"gate": "hard_forget"}, "raw_g"),
        ({"gate": "constant", "gate_value": -0.25}, "raw_g"),
        ({"beta": 0.0}, "beta"),
        ({"beta": 1.0}, "beta"),
        ({"equal_keys": True}, "k"),
        ({"zero_values": True}, "v"),
        ({"initial_state": 30.0}, "initial_state"),
    ],
)
def test_an_override_leaves_the_other_tensors_their_bits(changes: dict, touched: str) -> None:
    plain = make_inputs(CASE, 42, CPU)
    changed = make_inputs(replace(CASE, **changes), 42, CPU)
    for name in NAMES:
        same = same_bits(getattr(plain, name), getattr(changed, name))
        assert same is (name != touched), name


def test_values_of_overrides() -> None:
    def drawn(**changes: object) -> Inputs:
        return make_inputs(replace(CASE, **changes), 42, CPU)

    plain = drawn()
    assert (drawn(gate="no_decay").raw_g == 0).all()
    assert (drawn(gate="constant", gate_value=-0.25).raw_g == -0.25).all()
    assert (drawn(beta=0.0).beta == 0).all()
    assert (drawn(beta=1.0).beta == 1).all()
    assert (drawn(zero_values=True).v == 0).all()
    assert torch.equal(drawn(initial_state=30.0).initial_state, plain.initial_state * 30)
    mixed = drawn(gate="mixed").raw_g
    assert (mixed[:, 0::2] == 0).all()
    assert torch.equal(mixed[:, 1::2], plain.raw_g[:, 1::2])


def test_equal_keys_repeat_the_first_key_of_each_chunk_and_head() -> None:
    plain = make_inputs(CASE, 42, CPU).k
    k = make_inputs(replace(CASE, equal_keys=True), 42, CPU).k
    for token in range(CASE.tokens):
        assert torch.equal(k[:, token], plain[:, token - token % 64])


def test_hard_forget_overflows_a_division_by_exp_and_stays_above_its_floor() -> None:
    case = replace(CASE, gate="hard_forget", tokens=1024, v_heads=8, batch=4)
    raw_g = make_inputs(case, 42, CPU).raw_g
    assert raw_g.min() < -19  # "down to about −20 a token"
    assert raw_g.min() >= -20
    chunk_sums = raw_g.view(4, 16, 64, 8).sum(dim=2)
    assert torch.isinf((-chunk_sums).exp()).all()


def test_unknown_gate_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown gate 'soft'"):
        make_inputs(replace(CASE, gate="soft"), 42, CPU)
