"""The work done while the judge renews the inputs, before its clock starts.

A dispatch mode, entered when the module is imported, sees every operation of the judge. Each time
one has written the last of the inputs, it computes; the timed call returns what lies ready.

Caught as: CHEAT
Needs: CPU or GPU
"""

from __future__ import annotations

from typing import Any

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result
from torch.utils._python_dispatch import TorchDispatchMode

_arguments: tuple[Argument, ...] = ()
_ready: Result | None = None


class _Watch(TorchDispatchMode):
    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        global _ready
        result = func(*args, **(kwargs or {}))
        places = {tensor.data_ptr() for tensor in _arguments if tensor is not None}
        target = args[0] if func._schema.is_mutable and args else None
        if isinstance(target, torch.Tensor) and target.data_ptr() in places:
            _ready = right(*_arguments)
        return result


_Watch().__enter__()


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """What the watch has made ready, once it knows where the inputs lie."""
    global _arguments, _ready
    if _ready is None:
        _arguments = arguments
        return right(*arguments)
    result, _ready = _ready, None
    return result
