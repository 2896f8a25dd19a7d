"""Whether what a submission returned has the form of a result."""

from __future__ import annotations

import torch

from judge.case import HEAD_DIM, Case

_TENSORS = (torch.Tensor, torch.nn.Parameter)
_Base = torch._C.TensorBase  # its methods, whatever attributes a tensor has been given


def result_problem(
    result: object, case: Case, device: torch.device, tensor_types: tuple[type, ...] = _TENSORS
) -> str:
    """Why a returned object is not (output, final_state) of this case; empty where it is.

    tensor_types: the exact types that count as tensors; subclasses could answer anything. A
    subclass of tuple or list counts where it is read as those are, as a named tuple is.
    """
    if not _is_plain(result) or len(result) != 2:
        return f"returned {_kind(result)}, expected a tuple (output, final_state)"
    wanted = {
        "output": ((case.batch, case.tokens, case.v_heads, HEAD_DIM), torch.bfloat16),
        "final_state": ((case.batch, case.v_heads, HEAD_DIM, HEAD_DIM), torch.float32),
    }
    for (name, (shape, dtype)), tensor in zip(wanted.items(), result, strict=True):
        if not any(type(tensor) is kind for kind in tensor_types):  # a metaclass may define ==
            return f"{name} is {_kind(tensor)}, expected a torch.Tensor"
        tensor = plain_view(tensor)
        if tuple(tensor.shape) != shape:
            return f"{name} has shape {list(tensor.shape)}, expected {list(shape)}"
        if tensor.dtype != dtype:
            return f"{name} has dtype {short_name(tensor.dtype)}, expected {short_name(dtype)}"
        if tensor.device.type != device.type:
            return f"{name} is on {tensor.device}, expected {device}"
        if tensor.layout != torch.strided:
            return f"{name} has layout {short_name(tensor.layout)}, expected strided"
        if tensor.is_neg() or tensor.is_conj():
            return f"{name} has a negation left to be done by whoever reads it"
    return ""


def plain_addresses(result: object, wanted: tuple[torch.Tensor, torch.Tensor]) -> list[int] | None:
    """Where the tensors of a result begin, if they are contiguous and else as the wanted ones.

    None of the functions called here lets go of Python's lock or runs the submission's code.
    """
    if type(result) not in (tuple, list) or len(result) != len(wanted):
        return None
    addresses = []
    for tensor, like in zip(result, wanted, strict=True):
        if not any(type(tensor) is kind for kind in _TENSORS):
            return None
        form = [getattr(_Base, name).__get__(tensor) for name in ("shape", "dtype", "device")]
        if form != [like.shape, like.dtype, like.device] or not _Base.is_contiguous(tensor):
            return None
        addresses.append(_Base.data_ptr(tensor))
    return addresses


def plain_view(tensor: torch.Tensor) -> torch.Tensor:
    """The same contents as a tensor of the judge's own.

    One tensor of a submission's may have methods of its own, which would run here.
    """
    return torch.Tensor.detach(tensor)


def _is_plain(result: object) -> bool:
    """Whether iterating over this tuple or list runs none of the submission's code."""
    return type(type(result)) is type and any(
        isinstance(result, kind)
        and type(result).__iter__ is kind.__iter__
        and type(result).__len__ is kind.__len__
        for kind in (tuple, list)
    )


def short_name(value: torch.dtype | torch.layout) -> str:
    """bfloat16 for torch.bfloat16."""
    return str(value).removeprefix("torch.")


def _kind(value: object) -> str:
    if isinstance(value, tuple | list):
        length = tuple.__len__ if isinstance(value, tuple) else list.__len__
        return f"a {type(value).__name__} of {length(value)}"
    return "None" if value is None else f"a {type(value).__name__}"
