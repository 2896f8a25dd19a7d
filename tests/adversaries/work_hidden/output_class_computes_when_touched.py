"""A subclass of torch.Tensor that computes when somebody looks at it.

Caught as: BAD_RESULT
Evidence: expected a torch.Tensor
Needs: CPU or GPU
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result, garbage_like


class _Later(torch.Tensor):
    _work: Callable[[], torch.Tensor]

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        done = [item._work() if isinstance(item, _Later) else item for item in args]
        return func(*done, **(kwargs or {}))


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Two promises."""
    promises = []
    for place, form in enumerate(garbage_like(arguments)):
        promise = form.as_subclass(_Later)
        object.__setattr__(promise, "_work", lambda place=place: right(*arguments)[place])
        promises.append(promise)
    return tuple(promises)
