"""What the function under test is called with."""

from __future__ import annotations

import torch

from judge.child.arguments import InputForm, timed_part
from reference.preprocess import preprocess_for

CPU = torch.device("cpu")


def test_a_whole_forward_prepares_into_the_same_memory_at_every_call_of_a_case() -> None:
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []

    def function(*arguments: torch.Tensor) -> None:
        seen.append((arguments[3], arguments[5]))

    preprocess = preprocess_for(CPU)
    wholes = [timed_part(InputForm.WHOLE, function, preprocess) for _ in range(2)]
    for whole in (wholes[0], wholes[0], wholes[1]):
        k = torch.nn.functional.normalize(torch.randn(1, 100, 1, 128), dim=-1).bfloat16()
        raw_g, beta = -torch.rand(1, 100, 2), torch.rand(1, 100, 2)
        whole(k, k, k, raw_g, beta, None)
        for given, expected in zip(seen[-1], preprocess(k, raw_g, beta), strict=True):
            assert torch.equal(given, expected)
    first, second, other = ([tensor.data_ptr() for tensor in pair] for pair in seen)
    assert first == second
    assert not set(first) & set(other)
