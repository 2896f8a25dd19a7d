"""Kernels with one real mistake each, emulated; every one must fail the correctness suite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import torch

from reference.chunked import chunked_forward
from reference.emulation import bfloat16_forward
from reference.preprocess import CHUNK, gated_kkt_inverse_torch

Results = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Call:
    """The arguments of one call of gdn_prefill_forward."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    g_cumsum: torch.Tensor
    beta: torch.Tensor
    A: torch.Tensor
    initial_state: torch.Tensor | None

    def tokens(self, part: slice, state: torch.Tensor | None) -> Call:
        """The call for some of the tokens, whole chunks but for the last, from this state."""
        return Call(*(tensor[:, part] for tensor in self.arguments()[:-1]), state)

    def arguments(self) -> tuple:
        """The arguments in order."""
        return tuple(getattr(self, field.name) for field in fields(self))


def float32(call: Call) -> Results:
    """A forward with no rounding worth mention."""
    return chunked_forward(*call.arguments(), dtype=torch.float32)


def decay_free_inverse(call: Call) -> Results:
    A = gated_kkt_inverse_torch(call.k, torch.zeros_like(call.g_cumsum), call.beta)
    return float32(replace(call, A=A))


def beta_twice(call: Call) -> Results:
    return float32(replace(call, beta=call.beta * call.beta))


def interleaved_heads(call: Call) -> Results:
    """Value head h served by query/key head h mod Hq."""
    repeats = (1, 1, call.v.shape[2] // call.k.shape[2], 1)
    return float32(replace(call, q=call.q.repeat(repeats), k=call.k.repeat(repeats)))


def transposed_state(call: Call) -> Results:
    """The initial state taken for (V, K)."""
    if call.initial_state is None:
        return float32(call)
    return float32(replace(call, initial_state=call.initial_state.mT))


def state_in_bfloat16(call: Call) -> Results:
    """The state rounded after every chunk, instead of only where a product reads it."""
    outputs, state = [], call.initial_state
    for start in range(0, call.v.shape[1], CHUNK):
        part = call.tokens(slice(start, start + CHUNK), state)
        output, state = bfloat16_forward(*part.arguments())
        state = state.bfloat16().float()
        outputs.append(output)
    return torch.cat(outputs, dim=1), state


def last_token_dropped(call: Call) -> Results:
    """The last token reaches the output and not the state."""
    shorter = call.tokens(slice(0, -1), call.initial_state)
    return float32(call)[0], float32(shorter)[1]


MISTAKES: list[Callable[[Call], Results]] = [
    decay_free_inverse,
    beta_twice,
    interleaved_heads,
    transposed_state,
    state_in_bfloat16,
    last_token_dropped,
]
