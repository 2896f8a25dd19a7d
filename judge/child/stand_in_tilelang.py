"""TileLang kernels that are compiled later and never launched.

`tilelang.compile`, which every way to a kernel goes through, is made to return a DryKernel. A call
of it checks the arguments as the compiled kernel's host code would, notes the launch and returns
what out_idx says. Compiling waits until somebody asks, so that all kernels can be compiled side
by side.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

from judge.child.protocol import Launch

_INTEGERS = frozenset({"int8", "uint8", "int16", "int32", "int64", "bool"})
_CHECKED_DTYPES = _INTEGERS | {"bfloat16", "float16", "float32", "float64"}
_GRID = ("blockIdx.x", "blockIdx.y", "blockIdx.z")


class LaunchError(ValueError):
    """Arguments that the compiled kernel would refuse."""


class DryKernel:
    """Stands for a compiled kernel; it becomes one when something else than a call is asked of it.

    key: SHA-256, hexadecimal, over the kernel's code and how it is to be compiled.
    options: further arguments of tilelang.compile.
    """

    def __init__(self, func: Any, options: dict[str, Any], shop: KernelShop) -> None:
        self.func = func
        self.options = options
        self.name = str(func.attrs["global_symbol"])
        text = func.script(show_meta=True) + repr(sorted(options.items(), key=lambda o: o[0]))
        self.key = hashlib.sha256(text.encode()).hexdigest()
        self._shop = shop
        self._buffers = [func.buffer_map.get(param) for param in func.params]
        self._out = _output_positions(options.get("out_idx"), len(func.params))
        self._extents = _grid_extents(func.body, shop.tir)

    def __call__(self, *args: Any) -> Any:
        values = self._values(args)
        given = iter(args)
        arguments = [
            None if index in self._out else next(given) for index in range(len(self._buffers))
        ]
        for index in self._out:
            buffer = self._buffers[index]
            shape = [self._evaluate(size, values) for size in buffer.shape]
            dtype = getattr(torch, str(buffer.dtype))
            arguments[index] = torch.empty(shape, dtype=dtype, device="cuda:0")
        grids = [[self._evaluate(size, values) for size in grid] for grid in self._extents]
        self._shop.launched(self, Launch(self.key, self.name, grids))
        if len(self._out) == 1:
            return arguments[self._out[0]]
        return [arguments[index] for index in self._out]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._shop.compile_now(self), name)

    def _values(self, args: Sequence[Any]) -> dict[Any, int]:
        """The kernel's symbolic sizes as the arguments state them. Raises LaunchError."""
        wanted = [index for index in range(len(self._buffers)) if index not in self._out]
        if len(args) != len(wanted):
            raise LaunchError(f"{self.name} takes {len(wanted)} arguments, got {len(args)}")
        values: dict[Any, int] = {}
        tensors = []
        for index, argument in zip(wanted, args, strict=True):
            buffer = self._buffers[index]
            if buffer is None:
                if isinstance(argument, int):
                    values[self.func.params[index]] = int(argument)
            elif argument is not None:
                self._check_kind(buffer, argument)
                tensors.append((buffer, argument))
        for buffer, tensor in tensors:
            for size, actual in (
                *zip(buffer.shape, tensor.shape, strict=True),
                *zip(buffer.strides, tensor.stride(), strict=len(buffer.strides) > 0),
            ):
                if isinstance(size, self._shop.tir.Var):
                    values.setdefault(size, int(actual))
        for buffer, tensor in tensors:
            for size, actual in zip(buffer.shape, tensor.shape, strict=True):
                self._solve(size, int(actual), values)
        for buffer, tensor in tensors:
            self._check_sizes(buffer, tensor, values)
        return values

    def _solve(self, size: Any, actual: int, values: dict[Any, int]) -> None:
        """Note the one unknown of a size that is linear in it, such as batch + 1."""
        tir, unknown = self._shop.tir, []

        def visit(node: Any) -> None:
            if isinstance(node, tir.Var) and node not in values and node not in unknown:
                unknown.append(node)

        if not isinstance(size, int):
            tir.stmt_functor.post_order_visit(size, visit)
        if len(unknown) == 1:
            at_0, at_1 = (self._evaluate(size, values | {unknown[0]: at}) for at in (0, 1))
            solved = (actual - at_0) // (at_1 - at_0 or 1)
            if self._evaluate(size, values | {unknown[0]: solved}) == actual:
                values[unknown[0]] = solved

    def _check_kind(self, buffer: Any, argument: Any) -> None:
        if not isinstance(argument, torch.Tensor):
            raise LaunchError(f"{self._of(buffer)} is a {type(argument).__name__}, not a tensor")
        if argument.device.type != "cuda":
            raise LaunchError(f"{self._of(buffer)} is on {argument.device}, expected cuda")
        wanted, dtype = str(buffer.dtype), str(argument.dtype).removeprefix("torch.")
        if dtype != wanted and {dtype, wanted} <= _CHECKED_DTYPES:
            raise LaunchError(f"{self._of(buffer)} has dtype {dtype}, expected {wanted}")
        if argument.dim() != len(buffer.shape):
            raise LaunchError(
                f"{self._of(buffer)} has {argument.dim()} dimensions, expected {len(buffer.shape)}"
            )

    def _check_sizes(self, buffer: Any, tensor: torch.Tensor, values: dict[Any, int]) -> None:
        shape = [self._evaluate(size, values) for size in buffer.shape]
        if list(tensor.shape) != shape:
            raise LaunchError(
                f"{self._of(buffer)} has shape {list(tensor.shape)}, expected {shape}"
            )
        strides = [self._evaluate(stride, values) for stride in buffer.strides]
        if not strides:
            strides = list(torch.empty(shape, device="meta").stride())
        for size, stride, actual in zip(shape, strides, tensor.stride(), strict=True):
            if size > 1 and tensor.numel() and stride != actual:
                raise LaunchError(
                    f"{self._of(buffer)} has strides {list(tensor.stride())}, expected {strides}"
                )

    def _of(self, buffer: Any) -> str:
        return f"{self.name}: argument {buffer.name}"

    def _evaluate(self, expression: Any, values: dict[Any, int]) -> int:
        tir, known = self._shop.tir, {}
        if isinstance(expression, int):
            return expression
        for var, value in values.items():
            known[var] = tir.IntImm(str(var.dtype), value)
        result = self._shop.simplify(tir.stmt_functor.substitute(expression, known))
        if not isinstance(result, tir.IntImm):
            raise LaunchError(f"{self.name}: {expression} does not follow from the arguments")
        return int(result)


class KernelShop:
    """All kernels that the submission has made, and the launches of the current call."""

    def __init__(self, compile_now: Callable[[DryKernel], Any]) -> None:
        import tilelang.cache
        from tilelang import tvm

        self.tir = getattr(tvm, "tirx", None) or tvm.tir
        self.simplify = tvm.arith.Analyzer().simplify
        self.compile_now = compile_now
        self.kernels: dict[str, DryKernel] = {}
        self.launches: list[Launch] = []
        jit = sys.modules["tilelang.jit"]  # `tilelang.jit` itself is the decorator
        self.real_compile: Callable[..., Any] = jit.cached
        jit.cached = tilelang.cache.cached = self._make

    def launched(self, kernel: DryKernel, launch: Launch) -> None:
        """Note a launch."""
        self.kernels.setdefault(kernel.key, kernel)
        self.launches.append(launch)

    def _make(self, func: Any = None, out_idx: Any = None, *args: Any, **options: Any) -> DryKernel:
        if isinstance(out_idx, list):
            out_idx = list(out_idx)  # TileLang changes the list it is given
        return DryKernel(func, {"out_idx": out_idx, **options}, self)


def answer_compute_version(capability: tuple[int, int]) -> None:
    """Let code that asks TileLang for the device's compute capability have the stand-in's."""
    import tilelang.contrib.nvcc as nvcc
    from tvm.target import Target

    real = nvcc.get_target_compute_version

    def get_target_compute_version(target: Any = None) -> str:
        if target is None and Target.current(allow_none=True) is None:
            return "{}.{}".format(*capability)
        return real(target)

    nvcc.get_target_compute_version = get_target_compute_version


def _output_positions(out_idx: Any, count: int) -> list[int]:
    if out_idx is None:
        return []
    positions = [out_idx] if isinstance(out_idx, int) else list(out_idx)
    return [int(position) % count for position in positions]


def _grid_extents(body: Any, tir: Any) -> list[list[Any]]:
    """Blocks in x, y and z of every kernel in a function's body, as numbers or expressions.

    TileLang up to 0.1.9 writes them as thread_extent attributes, later versions as loops.
    """
    grids: list[list[Any]] = []
    current: dict[str, Any] = {}

    def visit(node: Any) -> None:
        if isinstance(node, tir.AttrStmt) and node.attr_key == "thread_extent":
            tag, extent = node.node.thread_tag, node.value
        elif isinstance(node, tir.For) and node.thread_binding is not None:
            tag, extent = node.thread_binding.thread_tag, node.extent
        else:
            return
        if tag in _GRID:
            current[tag] = extent
        if tag == _GRID[0]:  # the outermost, visited last
            grids.append([current.get(name, 1) for name in _GRID])
            current.clear()

    tir.stmt_functor.post_order_visit(body, visit)
    return grids
