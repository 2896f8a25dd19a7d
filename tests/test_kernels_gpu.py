"""The TileLang kernels against the definition, token by token in float64, on a CUDA device."""

import importlib.util
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
import torch
import torch.nn.functional as F

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

ROOT = Path(__file__).parents[1]
CHUNK = 64
HEAD_DIM = 128
OUTPUT_TOLERANCE = 5e-3


@dataclass(frozen=True)
class Shape:
    """One problem. state_tolerance is relative and absolute, as the judge uses it.

    It leaves bfloat16 operands about twice the error that they make by emulation in PyTorch, and is
    the judge's own 5e-3 wherever that is enough.
    """

    batch: int
    tokens: int
    qk_heads: int
    v_heads: int
    has_state: bool
    gate: str
    beta: float | None = None
    equal_keys: bool = False
    state_tolerance: float = 5e-3


SHAPES = [
    Shape(1, 1, 1, 1, False, "random_decay"),
    Shape(3, 63, 2, 8, True, "random_decay"),
    Shape(1, 64, 2, 6, False, "mixed"),
    Shape(3, 65, 1, 8, True, "hard_forget"),
    Shape(1, 129, 4, 4, True, "random_decay"),
    Shape(1, 1025, 2, 8, True, "random_decay"),
    Shape(3, 1025, 2, 6, False, "mixed"),
    Shape(1, 1025, 4, 4, True, "hard_forget"),
    Shape(1, 1025, 1, 8, True, "no_decay", state_tolerance=2e-2),
    Shape(1, 129, 2, 8, True, "random_decay", beta=0.0),
    Shape(3, 129, 4, 4, True, "random_decay", beta=1.0, state_tolerance=1e-2),
    Shape(1, 1025, 1, 1, True, "no_decay", beta=1.0, state_tolerance=4e-2),
    Shape(1, 129, 2, 6, True, "no_decay", beta=1.0, equal_keys=True, state_tolerance=8e-2),
]


@dataclass(frozen=True)
class Inputs:
    """Raw inputs, of the shapes and dtypes that the judge draws, and the preprocessed ones."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    raw_g: torch.Tensor
    beta: torch.Tensor
    initial_state: torch.Tensor | None


@cache
def load(path: str) -> ModuleType:
    """The module in that file, relative to the repository's root."""
    sys.path.insert(0, str((ROOT / path).parent))
    spec = importlib.util.spec_from_file_location(path.replace("/", "_")[:-3], ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def draw(shape: Shape) -> Inputs:
    generator = torch.Generator("cuda").manual_seed(42)

    def normal(*size: int) -> torch.Tensor:
        return torch.randn(size, generator=generator, device="cuda")

    batch, tokens = shape.batch, shape.tokens
    q = F.normalize(normal(batch, tokens, shape.qk_heads, HEAD_DIM), dim=-1).bfloat16()
    k = F.normalize(normal(batch, tokens, shape.qk_heads, HEAD_DIM), dim=-1).bfloat16()
    v = normal(batch, tokens, shape.v_heads, HEAD_DIM).bfloat16()
    raw_g = F.logsigmoid(normal(batch, tokens, shape.v_heads)) / 16
    beta = torch.sigmoid(normal(batch, tokens, shape.v_heads))
    state = normal(batch, shape.v_heads, HEAD_DIM, HEAD_DIM) if shape.has_state else None
    if shape.gate == "mixed":
        raw_g[:, ::2] = 0
    elif shape.gate == "no_decay":
        raw_g.zero_()
    elif shape.gate == "hard_forget":
        raw_g = (80 * raw_g).clamp(min=-20)
    if shape.beta is not None:
        beta.fill_(shape.beta)
    if shape.equal_keys:
        k = k[:, torch.arange(tokens, device="cuda") // CHUNK * CHUNK].contiguous()
    return Inputs(q, k, v, raw_g, beta, state)


@cache
def recurrence(shape: Shape) -> tuple[torch.Tensor, torch.Tensor]:
    """Output and final state of S_t = alpha (I - beta k k^T) S_{t-1} + beta k v^T, in float64."""
    inputs = draw(shape)
    group = shape.v_heads // shape.qk_heads
    q = inputs.q.double().repeat_interleave(group, dim=2) * HEAD_DIM**-0.5
    k = inputs.k.double().repeat_interleave(group, dim=2)
    v, beta, alpha = inputs.v.double(), inputs.beta.double(), inputs.raw_g.double().exp()
    if inputs.initial_state is None:
        size = (shape.batch, shape.v_heads, HEAD_DIM, HEAD_DIM)
        state = torch.zeros(size, dtype=torch.float64, device="cuda")
    else:
        state = inputs.initial_state.double()
    output = torch.empty_like(v)
    for t in range(shape.tokens):
        key = k[:, t, :, :, None]
        write = beta[:, t, :, None, None] * key
        decayed = alpha[:, t, :, None, None] * (state - write @ (key.mT @ state))
        state = decayed + write @ v[:, t, :, None, :]
        output[:, t] = (q[:, t, :, None, :] @ state)[:, :, 0]
    return output, state


def chunk_sums(raw_g: torch.Tensor) -> torch.Tensor:
    """[B, T, H] prefix sums inside each chunk, float64."""
    return torch.cat([part.double().cumsum(1) for part in raw_g.split(CHUNK, dim=1)], dim=1)


def exact_inverse(shape: Shape) -> torch.Tensor:
    """A [B, T, Hv, 64] by a float64 triangular solve, zero past the end of the last chunk."""
    inputs = draw(shape)
    sums = chunk_sums(inputs.raw_g)
    keys = inputs.k.double().repeat_interleave(shape.v_heads // shape.qk_heads, dim=2)
    result = torch.zeros(
        (shape.batch, shape.tokens, shape.v_heads, CHUNK), dtype=torch.float64, device="cuda"
    )
    for first in range(0, shape.tokens, CHUNK):
        part = slice(first, first + CHUNK)
        key = keys[:, part].transpose(1, 2)
        g = sums[:, part].transpose(1, 2)
        beta = inputs.beta[:, part].double().transpose(1, 2)
        below = torch.ones_like(key @ key.mT, dtype=torch.bool).tril(-1)
        exponent = (g[..., :, None] - g[..., None, :]).masked_fill(~below, -torch.inf)
        lower = beta[..., None] * (key @ key.mT) * exponent.exp()
        identity = torch.eye(key.shape[2], dtype=torch.float64, device="cuda").expand_as(lower)
        inverse = torch.linalg.solve_triangular(
            lower + identity, identity, upper=False, unitriangular=True
        )
        result[:, part, :, : key.shape[2]] = inverse.transpose(1, 2)
    return result


@cache
def preprocessed(shape: Shape) -> tuple[torch.Tensor, torch.Tensor]:
    """g_cumsum and A from the kernels, written into memory that held NaN."""
    kernels = load("reference/preprocess_tilelang.py")
    inputs = draw(shape)
    g_cumsum = kernels.chunk_cumsum(inputs.raw_g, torch.full_like(inputs.raw_g, torch.nan))
    size = (shape.batch, shape.tokens, shape.v_heads, CHUNK)
    A = torch.full(size, torch.nan, dtype=torch.bfloat16, device="cuda")
    return g_cumsum, kernels.gated_kkt_inverse(inputs.k, g_cumsum, inputs.beta, A)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_preprocessing(shape: Shape) -> None:
    g_cumsum, A = preprocessed(shape)
    torch.testing.assert_close(
        g_cumsum.double(), chunk_sums(draw(shape).raw_g), rtol=2**-24, atol=1e-9
    )
    # One rounding to bfloat16 is at most 2^-8 relative; the absolute part is for the float32
    # arithmetic before it.
    torch.testing.assert_close(A.double(), exact_inverse(shape), rtol=2**-8, atol=1e-4)
    beyond = shape.tokens % CHUNK
    if beyond:
        assert (A[:, shape.tokens - beyond :, :, beyond:] == 0).all()


FORWARDS = [
    "reference/simple_tilelang.py",
    "submissions/v01_gemm/tilelang_fwd.py",
    "submissions/v02_tma/tilelang_fwd.py",
    "submissions/v02b_tma_dv32/tilelang_fwd.py",
    "submissions/v05_adaptive_dv/tilelang_fwd.py",
    "submissions/v06_warp_specialized/tilelang_fwd.py",
    "submissions/v07_gva_dv/tilelang_fwd.py",
    "submissions/v14_cuda_graph/tilelang_fwd.py",
    "submissions/experiments/parallel_scan/tilelang_fwd.py",
]


@pytest.mark.parametrize("path", FORWARDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_forward(path: str, shape: Shape) -> None:
    inputs = draw(shape)
    g_cumsum, A = preprocessed(shape)
    output, state = load(path).gdn_prefill_forward(
        inputs.q, inputs.k, inputs.v, g_cumsum, inputs.beta, A, inputs.initial_state
    )
    assert output.dtype == torch.bfloat16
    assert state.dtype == torch.float32
    expected_output, expected_state = recurrence(shape)
    torch.testing.assert_close(
        output.double(), expected_output, rtol=OUTPUT_TOLERANCE, atol=OUTPUT_TOLERANCE
    )
    tolerance = shape.state_tolerance
    torch.testing.assert_close(state.double(), expected_state, rtol=tolerance, atol=tolerance)


def test_replays_read_the_inputs_anew() -> None:
    """v14: direct run, capture, replay; then the same addresses with other values in them."""
    shape = next(shape for shape in SHAPES if shape.tokens == 1025 and shape.has_state)
    inputs = draw(shape)
    g_cumsum, A = preprocessed(shape)
    v, state = inputs.v.clone(), inputs.initial_state.clone()
    forward = load("submissions/v14_cuda_graph/tilelang_fwd.py").gdn_prefill_forward

    def call() -> tuple[torch.Tensor, torch.Tensor]:
        results = forward(inputs.q, inputs.k, v, g_cumsum, inputs.beta, A, state)
        return tuple(result.clone() for result in results)

    first, captured, replayed = call(), call(), call()
    for again in (captured, replayed):
        assert all(torch.equal(*pair) for pair in zip(first, again, strict=True))
    # Output and state are linear in (V, initial state), and halving is exact in every format.
    v /= 2
    state /= 2
    for halved, whole in zip(call(), first, strict=True):
        assert torch.equal(halved * 2, whole)
