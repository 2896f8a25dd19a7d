"""Inside a child that checks: dry calls with stand-in tensors, then the kernels' compilation."""

from __future__ import annotations

import inspect
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)

from judge.case import CHUNK, HEAD_DIM, Case
from judge.child.arguments import InputForm, untimed_part
from judge.child.compiling import Compiler
from judge.child.failure import describe
from judge.child.known_integers import KnownIntegers
from judge.child.loading import FUNCTION, forbidden_loaded, import_function
from judge.child.protocol import (
    Check,
    Checked,
    Compile,
    Compiled,
    Failed,
    Launch,
    Load,
    Loaded,
    Reply,
    Request,
    TensorForm,
)
from judge.child.results import result_problem, short_name
from judge.child.stand_in_cuda import install_cuda
from judge.child.stand_in_tilelang import LaunchError, answer_compute_version
from judge.child.stand_in_triton import install_triton

_CALLS = 3
"""As many as grading makes at least: some submissions capture a graph on the second call."""
_SLOW_S = 2.0
"""A first call slower than this, made of many torch operators, is not repeated."""
_CANNOT_ANSWER = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)


class CheckWorker:
    """The submission's function and the kernels that its dry calls launched."""

    def __init__(self, settings: Any) -> None:
        self._settings = settings
        self._device = torch.device("cuda", 0)
        self._function: Callable[..., object] | None = None
        self._compiler: Compiler | None = None
        self._unchecked: list[str] = []

    def answer(self, request: Request) -> Reply:
        """Do what a request asks; an exception on the way becomes Failed, its traceback logged."""
        try:
            match request:
                case Load():
                    return self._load()
                case Check():
                    return self._check(request.case)
                case Compile():
                    return self._compile(request)
        except BaseException as error:
            _log(error)
            return describe(error, "cuda")
        raise AssertionError(f"unhandled request {request!r}")

    def _load(self) -> Loaded | Failed:
        install_triton(self._note)
        mode = install_cuda(self._settings.profile)
        try:
            self._compiler = Compiler(
                Path(os.environ["TILELANG_CACHE_DIR"]), self._settings.threads
            )
            answer_compute_version(self._settings.profile.capability)
        except ImportError:
            traceback.print_exc()  # without TileLang there are no kernels to check
        mode.__enter__()  # for the rest of the process's life
        if self._settings.inputs is not InputForm.PREPARED:
            # A public implementation, of which it is known that no kernel writes what it reads.
            KnownIntegers().__enter__()
        self._function, failure = import_function(self._settings.entry)
        return failure or Loaded()

    def _check(self, case: Case) -> Checked:
        launches: list[Launch] = []
        if self._compiler is not None:
            self._compiler.shop.launches = launches
        self._unchecked.clear()
        problem, kind, outputs = "", "", []
        try:
            arguments = self._arguments(case)
            problem = _signature_problem(self._function, self._settings.inputs.names)
            kind = "signature" if problem else ""
            start = time.monotonic()
            for call in range(0 if problem else _CALLS):
                result = self._function(*arguments)
                if call == 0:
                    first = list(launches)
                problem = result_problem(result, case, self._device, (torch.Tensor, FakeTensor))
                kind = "result" if problem else ""
                outputs = _forms(result)
                if problem or time.monotonic() - start > _SLOW_S:
                    break
            launches = first if outputs else launches
        except BaseException as error:
            _log(error)
            problem, kind = _meaning(error)
        return Checked(
            problem=problem,
            kind=kind,
            launches=_distinct(launches),
            outputs=outputs,
            forbidden=forbidden_loaded(self._settings.folder),
            unchecked=list(dict.fromkeys(self._unchecked)),
        )

    def _arguments(self, case: Case) -> tuple[torch.Tensor | None, ...]:
        """The arguments of a case; what its function's own preparation launches counts too."""
        tensors = _stand_in_tensors(case)
        if self._settings.inputs is InputForm.OWN:
            prepare = untimed_part(InputForm.OWN, self._function, None)
            prepared = prepare(tensors["k"], tensors["raw_g"], tensors["beta"])
            tensors["g_cumsum"], tensors["A"] = prepared
        return tuple(tensors.get(name) for name in self._settings.inputs.names)

    def _compile(self, request: Compile) -> Compiled:
        first, *_ = [self._compiler.start(key) for key in (request.kernel, *request.beside)]
        return first.result()

    def _note(self, what: str) -> None:
        self._unchecked.append(what)


def _stand_in_tensors(case: Case) -> dict[str, torch.Tensor]:
    """All inputs of a case by name, as tensors without contents; created in the fake mode."""
    tokens = (case.batch, case.tokens)
    shapes = {
        "q": ((*tokens, case.qk_heads, HEAD_DIM), torch.bfloat16),
        "k": ((*tokens, case.qk_heads, HEAD_DIM), torch.bfloat16),
        "v": ((*tokens, case.v_heads, HEAD_DIM), torch.bfloat16),
        "raw_g": ((*tokens, case.v_heads), torch.float32),
        "g_cumsum": ((*tokens, case.v_heads), torch.float32),
        "beta": ((*tokens, case.v_heads), torch.float32),
        "A": ((*tokens, case.v_heads, CHUNK), torch.bfloat16),
        "initial_state": ((case.batch, case.v_heads, HEAD_DIM, HEAD_DIM), torch.float32),
    }
    if case.initial_state is None:
        del shapes["initial_state"]
    return {
        name: torch.empty(shape, dtype=dtype, device="cuda:0")
        for name, (shape, dtype) in shapes.items()
    }


def _signature_problem(function: Callable[..., object], names: Sequence[str]) -> str:
    """Why the judge cannot call the function as it does, its arguments by position."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    wanted = f"{FUNCTION}({', '.join(names)}=None)"
    try:
        signature.bind(*names)
    except TypeError as error:
        return f"{FUNCTION}{signature}: {error}; it must accept {wanted}"
    own = [name for name in signature.parameters if name in names]
    if own != [name for name in names if name in own]:
        return f"{FUNCTION}{signature} has its parameters in another order than {wanted}"
    return ""


def _meaning(error: BaseException) -> tuple[str, str]:
    """An exception's line, and its kind: not_checked, compile or crash."""
    described = describe(error, "cuda")
    if isinstance(error, _CANNOT_ANSWER):
        return f"the call depends on computed data: {described.error}", "not_checked"
    if isinstance(error, LaunchError) or not described.compiling:
        return described.error, "crash"
    return described.error, "compile"


def _forms(result: object) -> list[TensorForm]:
    if isinstance(result, torch.Tensor):
        result = [result]
    if not isinstance(result, tuple | list):
        return []
    return [
        TensorForm(list(tensor.shape), short_name(tensor.dtype))
        for tensor in result
        if isinstance(tensor, torch.Tensor)
    ]


def _distinct(launches: list[Launch]) -> list[Launch]:
    return list({(launch.kernel, str(launch.grids)): launch for launch in launches}.values())


def _log(error: BaseException) -> None:
    traceback.print_exception(error)
    sys.stderr.flush()
