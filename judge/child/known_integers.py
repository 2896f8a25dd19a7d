"""Small integer tensors without contents whose contents are known all the same.

A library that lays sequences end to end computes their bounds with torch and reads them back on
the host, to decide which kernels it launches. The bounds follow from the shapes alone: they are
computed on the CPU beside the stand-in tensors, which so can answer `.item()` and `.tolist()`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_iter, tree_map

LARGEST = 2**20
"""Elements of the largest tensor that is followed."""

_VALUE = "known_value"
_WITHOUT_CONTENTS = ("aten::empty", "aten::new_empty")
_READ = torch.ops.aten._local_scalar_dense.default


class KnownIntegers(TorchDispatchMode):
    """Entered above a FakeTensorMode: integers and booleans that torch itself makes are followed.

    Known is what a factory, a copy from the host or an operator on known tensors alone has made.
    A kernel's result is not, as long as it writes into what torch.empty gave: one that writes into
    a tensor with known contents would go unseen.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lost: set[torch.UntypedStorage] = set()

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        operands = [leaf for leaf in tree_iter((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        known = all(self._is_known(operand) for operand in operands)
        known = known and torch.Tag.nondeterministic_seeded not in func.tags
        if func is _READ and known:
            with _disable_current_modes():
                return _value(args[0]).item()
        result = func(*args, **kwargs)
        made = [leaf for leaf in tree_iter(result) if isinstance(leaf, torch.Tensor)]
        if func._schema.name.startswith(_WITHOUT_CONTENTS) or not made:
            return result
        if known and all(map(_is_followed, made)):
            with _disable_current_modes():
                values = func(*tree_map(_on_host, args), **tree_map(_on_host, kwargs))
            for tensor, value in zip(made, tree_iter(values), strict=True):
                setattr(tensor, _VALUE, value)
        elif func._schema.is_mutable and self._is_known(args[0]):
            self._lost.add(_value(args[0]).untyped_storage())  # of its views and its base too
        return result

    def _is_known(self, tensor: torch.Tensor) -> bool:
        value = _value(tensor)
        return value is not None and value.untyped_storage() not in self._lost


def _is_followed(tensor: torch.Tensor) -> bool:
    whole = not (tensor.is_floating_point() or tensor.is_complex())
    return whole and tensor.numel() <= LARGEST


def _value(tensor: torch.Tensor) -> torch.Tensor | None:
    """A tensor's contents, None where they are not known; one with a memory is its own."""
    if type(tensor) is torch.Tensor and tensor.device.type == "cpu":
        return tensor
    return getattr(tensor, _VALUE, None)


def _on_host(argument: Any) -> Any:
    if isinstance(argument, torch.Tensor):
        return _value(argument)
    return torch.device("cpu") if isinstance(argument, torch.device) else argument
