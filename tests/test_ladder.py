"""The ladder's submissions: what they decide on the host, without a GPU."""

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
import torch

SUBMISSIONS = Path(__file__).parents[1] / "submissions"


@cache
def load(folder: str) -> ModuleType:
    """The tilelang_fwd.py of that submission, with its own folder on the import path."""
    pytest.importorskip("tilelang")
    path = SUBMISSIONS / folder / "tilelang_fwd.py"
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(folder.replace("/", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("folder", ["v05_adaptive_dv", "v06_warp_specialized"])
@pytest.mark.parametrize(
    ("chains", "sms", "dv_slice"),
    # chain_equal and long_low_gva on 14 SMs; wide_gva_state on a whole H200; both sides of half
    [(4, 14, 32), (8, 14, 128), (64, 132, 32), (66, 132, 128), (7, 14, 128), (7, 15, 32)],
)
def test_slice_by_grid(folder: str, chains: int, sms: int, dv_slice: int) -> None:
    assert load(folder).select_dv_slice(chains, sms) == dv_slice


@pytest.mark.parametrize("folder", ["v07_gva_dv", "v14_cuda_graph"])
@pytest.mark.parametrize(
    ("v_heads", "qk_heads", "dv_slice"), [(4, 4, 64), (1, 1, 64), (8, 2, 128), (6, 3, 128)]
)
def test_slice_by_heads(folder: str, v_heads: int, qk_heads: int, dv_slice: int) -> None:
    assert load(folder).select_dv_slice(v_heads, qk_heads) == dv_slice


def arguments() -> list[torch.Tensor]:
    """Nine tensors in the order of v14's kernel, small ones of the right rank."""
    q = torch.zeros(1, 3, 1, 4)
    v = torch.zeros(1, 3, 2, 4)
    gates = torch.zeros(1, 3, 2)
    state = torch.zeros(1, 2, 4, 4)
    parts = (q, q, v, gates, gates, v, state, v, state)
    return [part.clone() for part in parts]


def test_a_graph_serves_the_same_call_only() -> None:
    graph_key = load("v14_cuda_graph").graph_key
    tensors = arguments()
    key = graph_key(tensors, True)
    assert graph_key(list(tensors), True) == key
    assert graph_key(tensors, False) != key
    for place, tensor in enumerate(tensors):
        moved = [*tensors[:place], tensor.clone(), *tensors[place + 1 :]]
        assert graph_key(moved, True) != key, f"argument {place} at another address"


@pytest.mark.parametrize("place", [0, 2])
def test_a_graph_serves_one_size_only(place: int) -> None:
    graph_key = load("v14_cuda_graph").graph_key
    tensors = arguments()
    shorter = [*tensors[:place], tensors[place][:, :2], *tensors[place + 1 :]]
    assert shorter[place].data_ptr() == tensors[place].data_ptr()
    assert graph_key(shorter, True) != graph_key(tensors, True)


def test_buffers_are_reused_by_shape() -> None:
    buffers = load("v14_cuda_graph").buffers
    device = torch.device("cpu")
    output, state = buffers(torch.Size((2, 5, 3, 128)), device)
    assert output.shape == (2, 5, 3, 128)
    assert output.dtype == torch.bfloat16
    assert state.shape == (2, 3, 128, 128)
    assert state.dtype == torch.float32
    again = buffers(torch.Size((2, 5, 3, 128)), device)
    assert again[0] is output
    assert again[1] is state
    assert buffers(torch.Size((2, 6, 3, 128)), device)[0] is not output


@pytest.mark.parametrize("tokens", [1, 64, 65, 1025, 8192, 20001, 32768])
@pytest.mark.parametrize("chains", [1, 2, 8, 64, 200])
@pytest.mark.parametrize("sms", [14, 132])
def test_segments_cover_the_sequence(tokens: int, chains: int, sms: int) -> None:
    segments, segment_chunks = load("experiments/parallel_scan").segmentation(tokens, chains, sms)
    covered = segments * segment_chunks * 64
    assert covered >= tokens
    # The last segment is not empty, and all before it are whole.
    assert covered - segment_chunks * 64 < tokens
    assert segments == 1 or segments * chains <= sms


def test_segments_of_the_lab() -> None:
    segmentation = load("experiments/parallel_scan").segmentation
    assert segmentation(32768, 8, 14) == (1, 512)
    assert segmentation(32768, 8, 132) == (16, 32)


@pytest.mark.parametrize(
    ("v_heads", "merged"), [(1, 1), (8, 8), (10, 5), (12, 6), (64, 8), (34, 2)]
)
def test_merged_gates_divide_the_heads(v_heads: int, merged: int) -> None:
    assert load("experiments/v11_merged_gates").select_merged(v_heads) == merged
