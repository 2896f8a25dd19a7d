"""A Triton that compiles and launches nothing, so that its kernels pass through a dry call."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def install_triton(note: Callable[[str], None]) -> None:
    """Let `import triton` and its submodules give the stand-in.

    note: told the name of every kernel that is launched, since none of them is checked.
    """
    sys.meta_path.insert(0, _Finder(note))


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes every module below `triton` out of nothing."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != "triton" and not name.startswith("triton."):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__version__ = "3.0.0"
        module.__path__ = []
        if module.__name__ == "triton":
            module.jit = _decorator(self._kernel)
            module.autotune = module.heuristics = lambda *args, **kwargs: lambda kernel: kernel
            module.Config = _Anything
            module.cdiv = lambda x, y: -(-x // y)
            module.next_power_of_2 = lambda n: 1 << max(n - 1, 0).bit_length()

    def _kernel(self, function: Callable[..., Any]) -> _Kernel:
        return _Kernel(function, self._note)


class _Kernel:
    """A decorated kernel: kernel[grid](...) is noted and does nothing."""

    def __init__(self, function: Callable[..., Any], note: Callable[[str], None]) -> None:
        self.fn = function
        self.__name__ = getattr(function, "__name__", "kernel")
        self._note = note

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return self.run

    def run(self, *_: Any, **__: Any) -> None:
        """A launch."""
        self._note(f"Triton kernel {self.__name__}")

    warmup = run


class _Module(ModuleType):
    """A module that has whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()


class _Anything:
    """Has every attribute and may be called; a type, a constant or a function of Triton's."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()

    def __call__(self, *args: Any, **__: Any) -> Any:
        # As a decorator it hands back what it decorates.
        return args[0] if len(args) == 1 and callable(args[0]) else _Anything()

    def __getitem__(self, key: Any) -> Any:
        return _Anything()


def _decorator(wrap: Callable[[Callable[..., Any]], Any]) -> Callable[..., Any]:
    """`wrap` as a decorator that may be written with and without arguments."""

    def decorate(function: Callable[..., Any] | None = None, **_: Any) -> Any:
        return wrap if function is None else wrap(function)

    return decorate
