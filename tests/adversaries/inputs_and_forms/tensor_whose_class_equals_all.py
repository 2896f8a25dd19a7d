"""A tensor subclass whose class says that it equals any other, so that it passes for a plain one.

Caught as: BAD_RESULT
Evidence: expected a torch.Tensor
Needs: CPU or GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result


class _EqualsAll(type(torch.Tensor)):
    """Compares as the judge would like it to."""

    def __eq__(cls, other: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return hash(torch.Tensor)


class _Lazy(torch.Tensor, metaclass=_EqualsAll):
    """Computes when the judge copies it out, after the clock has stopped."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):  # noqa: ANN001, ANN206
        return super().__torch_function__(function, types, args, kwargs or {})


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result in a class of its own."""
    output, state = right(*arguments)
    return output.as_subclass(_Lazy), state
