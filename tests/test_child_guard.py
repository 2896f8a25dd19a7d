"""The guard in the child names what was patched, and nothing else."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from types import FunctionType, MethodType, ModuleType
from typing import Protocol

import pytest
import torch

from judge.child import driver
from judge.child.guard import Guard

NEEDS_HANDLES = pytest.mark.skipif(
    not hasattr(torch.cuda.Event, "cuda_event"), reason="PyTorch was built without CUDA"
)


class Kind(type):
    """A class of classes, as enumerations and protocols have."""


@pytest.fixture
def own() -> ModuleType:
    """A new module of the judge's own: a protocol, and a class with each sort of method."""

    class Shape(Protocol):
        def area(self) -> int: ...

    class Square(metaclass=Kind):
        @classmethod
        def unit(cls) -> Square:
            return cls()

        @staticmethod
        def twice(number: int) -> int:
            return 2 * number

        @property
        def side(self) -> int:
            return 1

        @side.setter
        def side(self, side: int) -> None:
            raise ValueError(side)

        def area(self) -> int:
            return 1

    def measured(shape: Shape) -> int:
        return shape.area()

    module = ModuleType("own")
    for cls in (Shape, Square):
        cls.__module__ = "own"
        setattr(module, cls.__name__, cls)
    module.measured = measured
    return module


def lie(*_: object) -> int:
    return 0


def same_code(function: FunctionType) -> FunctionType:
    """A function of the same code that finds other globals."""
    return FunctionType(function.__code__, {"int": lie})


def replace_class_method(own: ModuleType) -> None:
    own.Square.unit = classmethod(lie)


def change_class_method(own: ModuleType) -> None:
    vars(own.Square)["unit"].__func__.__code__ = lie.__code__


def make_class_method_of_another(own: ModuleType) -> None:
    method = vars(own.Square)["unit"]
    method.__init__(same_code(method.__func__))


def change_static_method(own: ModuleType) -> None:
    own.Square.twice.__code__ = lie.__code__


def make_static_method_of_another(own: ModuleType) -> None:
    vars(own.Square)["twice"].__init__(same_code(own.Square.twice))


def change_getter(own: ModuleType) -> None:
    own.Square.side.fget.__code__ = lie.__code__


def change_setter(own: ModuleType) -> None:
    own.Square.side.fset.__code__ = lie.__code__


def make_property_of_another(own: ModuleType) -> None:
    side = own.Square.side
    side.__init__(same_code(side.fget), side.fset)


def change_method(own: ModuleType) -> None:
    own.Square.area.__code__ = lie.__code__


def change_protocol(own: ModuleType) -> None:
    own.Shape.area = lie


def exchange_the_module_s_class(own: ModuleType) -> None:
    own.__class__ = type("Module", (ModuleType,), {"measured": property(lambda _: lie)})


def hide_behind_the_module_s_class(own: ModuleType) -> None:
    honest = own.measured
    own.__class__ = type("Module", (ModuleType,), {"measured": property(lambda _: honest)})
    vars(own)["measured"] = lie


def exchange_the_class_s_class(own: ModuleType) -> None:
    own.Square.__class__ = type("Other", (Kind,), {"twice": property(lambda _: lie)})


def pose_as_a_bound_method(own: ModuleType) -> None:
    honest = own.measured

    class Posing:
        __class__ = MethodType
        __self__ = staticmethod(honest)
        __func__ = honest.__code__
        __call__ = lie

    own.measured = Posing()


def test_guard_finds_nothing_in_a_module_that_was_left_alone(own: ModuleType) -> None:
    guard = Guard([own])
    square = own.Square.unit()
    assert (square.side, square.twice(2), own.measured(square)) == (1, 4, 1)
    assert guard.replaced(square) == []


@pytest.mark.parametrize(
    ("patch", "name"),
    [
        (replace_class_method, "Square.unit"),
        (change_class_method, "Square.unit"),
        (make_class_method_of_another, "Square.unit"),
        (change_static_method, "Square.twice"),
        (make_static_method_of_another, "Square.twice"),
        (change_getter, "Square.side"),
        (change_setter, "Square.side"),
        (make_property_of_another, "Square.side"),
        (change_method, "Square.area"),
        (change_protocol, "Shape.area"),
        (exchange_the_module_s_class, "measured"),
        (hide_behind_the_module_s_class, "measured"),
        (exchange_the_class_s_class, "Square.twice"),
        (pose_as_a_bound_method, "measured"),
    ],
)
def test_guard_names_what_was_patched_in_the_judge_s_own_module(
    patch: Callable[[ModuleType], None], name: str, own: ModuleType
) -> None:
    guard = Guard([own])
    patch(own)
    assert guard.replaced() == [f"own.{name}"]


def test_guard_sees_a_class_of_classes_that_answers_first(
    own: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = Guard([own])
    monkeypatch.setattr(Kind, "twice", property(lambda _: lie), raising=False)
    assert own.Square.twice(2) == 0
    assert guard.replaced() == ["own.Square.twice"]


@pytest.mark.parametrize(
    ("owner", "name", "label"),
    [
        (torch.Tensor, "is_neg", "torch.Tensor.is_neg"),
        (torch.Tensor, "shape", "torch.Tensor.shape"),
        (torch.cuda.CUDAGraph, "replay", "torch.cuda.CUDAGraph.replay"),
        (torch.cuda, "_lazy_init", "torch.cuda._lazy_init"),
        pytest.param(
            *(torch.cuda.Event, "cuda_event", "torch.cuda.Event.cuda_event"), marks=NEEDS_HANDLES
        ),
        pytest.param(
            *(torch.cuda.Stream, "cuda_stream", "torch.cuda.Stream.cuda_stream"),
            marks=NEEDS_HANDLES,
        ),
        (torch.cuda.profiler, "stop", "torch.cuda.profiler.stop"),
        (torch, "tensor", "torch.tensor"),
        (gc, "disable", "gc.disable"),
    ],
)
def test_guard_names_what_was_replaced(
    owner: type | ModuleType, name: str, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = Guard([])
    assert guard.replaced() == []
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, lambda *_: None)
        found = guard.replaced()
    assert found == [label]
    assert guard.replaced() == []


def test_guard_watches_the_functions_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_copy_bytes", print)  # as where there is a driver
    guard = Guard([driver])
    assert guard.replaced(driver.Driver()) == []
    monkeypatch.setattr(driver, "_copy_bytes", lambda *_: 0)
    assert guard.replaced() == ["judge.child.driver._copy_bytes"]


def test_guard_sees_what_ctypes_is_told_to_run_around_a_function(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    function = ctypes.PyDLL(None).abs
    monkeypatch.setattr(driver, "_record_event", function)
    guard = Guard([driver])
    assert guard.replaced() == []
    function.errcheck = lambda result, *_: result
    assert guard.replaced() == ["judge.child.driver._record_event"]


def test_guard_sees_a_tool_that_watches_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Monitoring:
        @staticmethod
        def get_tool(number: int) -> str | None:
            return "profiler" if number == 2 else None

    monkeypatch.setattr("sys.monitoring", Monitoring, raising=False)
    assert Guard([]).replaced() == ["what Python runs, by sys.monitoring"]
