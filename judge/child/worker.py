"""Inside the child: serve the judge's requests with the submission's code.

Nothing in this process knows an expected result. The judge believes no reply further than its
type: it knows the sizes it reads, and compares results itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import torch

from judge.case import Case
from judge.child.arguments import (
    InputForm,
    Untimed,
    draw_arguments,
    timed_part,
    untimed_part,
)
from judge.child.calls import Held, TimedCalls, time_call, time_calls
from judge.child.cores import QuickestCore, launch_probe
from judge.child.driver import Driver
from judge.child.failure import describe
from judge.child.gpu_time import gpu_time
from judge.child.guard import Guard
from judge.child.lab_modules import install_lab_modules
from judge.child.loading import PACKAGE, forbidden_loaded, import_function
from judge.child.profiling import profile_calls
from judge.child.protocol import (
    Call,
    Called,
    Close,
    Collect,
    Collected,
    Failed,
    Gauge,
    Gauged,
    Load,
    Loaded,
    Prepare,
    Prepared,
    Profile,
    Profiled,
    Ran,
    Ready,
    Repeat,
    Repeated,
    Reply,
    Request,
    Run,
    encode,
    receive_request,
)
from judge.child.renewal import Arguments, Renewal
from judge.child.results import plain_view, result_problem
from judge.child.shared_memory import ChildMemory
from judge.child.snapshot import Snapshot
from judge.digest import tensor_digest
from judge.profiles import DeviceProfile
from judge.sm_budget import enter_budget
from reference.preprocess import preprocess_for

_PR_SET_PDEATHSIG = 1
_AWAKE_S = 0.002  # most of a submission's repetitions are asked for at once


class Settings(msgspec.Struct, frozen=True):
    """How a child is started; it travels as JSON on its command line.

    device: torch device. folder: holds the package `student` with the submission's files.
    entry: module file inside it. threads: CPU threads for torch. judge_root: folder of the judge.
    environment: variables set once the judge's own kernels are loaded (compile caches).
    profile: the device to check the submission for without one; None where it is graded.
    inputs: what the function takes. sms: how many SMs it may use, None for the whole device.
    """

    device: str
    folder: str
    entry: str
    threads: int
    judge_root: str
    environment: dict[str, str]
    profile: DeviceProfile | None = None
    inputs: InputForm = InputForm.PREPARED
    sms: int | None = None


def main(channel_fd: int, memory_fd: int, settings_json: str) -> None:
    """Load what the judge needs, hide it, then serve until Close or the judge's end."""
    _die_with_parent()
    settings = msgspec.json.decode(settings_json, type=Settings)
    channel = socket.socket(fileno=channel_fd)
    torch.set_num_threads(settings.threads)
    worker = Worker(settings, memory_fd) if settings.profile is None else _check_worker(settings)
    os.environ.update(settings.environment)
    install_lab_modules()
    _hide_judge(settings.judge_root)
    sys.path[:0] = [str(Path(settings.folder) / PACKAGE), settings.folder]
    channel.sendall(encode(Ready()))
    awake_s = 0.0
    while True:
        try:
            request = receive_request(channel, awake_s)
        except EOFError:
            return
        if isinstance(request, Close):
            return
        reply = worker.answer(request)
        awake_s = _AWAKE_S if isinstance(request, Repeat) and request.awake else 0.0
        channel.sendall(encode(reply))


def _check_worker(settings: Settings) -> Any:
    # Imported where it is needed alone: the stand-ins cost a second.
    from judge.child.check_worker import CheckWorker

    return CheckWorker(settings)


class Worker:
    """The submission's function, the inputs of the current case and what the calls returned."""

    def __init__(self, settings: Settings, memory_fd: int) -> None:
        self._settings = settings
        self._memory = ChildMemory(memory_fd)
        self._device = torch.device(settings.device)
        on_cuda = self._device.type == "cuda"
        self._driver = Driver() if on_cuda else None
        self._held: Held = contextlib.nullcontext
        if settings.sms is not None:
            self._held = enter_budget(self._device, settings.sms).held
        self._preprocess = preprocess_for(self._device)
        self._exported: Callable[..., object] | None = None
        self._function: Callable[..., object] | None = None
        self._untimed: Untimed | None = None
        self._case: Case | None = None
        self._renewal: Renewal | None = None
        self._results: dict[str, object] = {}
        self._launches = 0
        self._snapshot: Snapshot | None = None
        self._core = QuickestCore(launch_probe()) if on_cuda else None
        self._guard = Guard([sys.modules[name] for name in _judge_modules()])

    def answer(self, request: Request) -> Reply:
        """Do what a request asks; an exception on the way becomes Failed, its traceback logged."""
        try:
            match request:
                case Load():
                    return self._load()
                case Prepare():
                    return self._prepare(request)
                case Call():
                    return self._call()
                case Run():
                    return self._run(request)
                case Repeat():
                    return self._repeat(request)
                case Collect():
                    return self._collect(request)
                case Gauge():
                    return self._gauge()
                case Profile():
                    return self._profile(request)
        except BaseException as error:
            with contextlib.suppress(Exception):  # sys.stderr is the submission's to break
                traceback.print_exc()
                sys.stderr.flush()
            return describe(error, self._device.type)
        raise AssertionError(f"unhandled request {request!r}")

    def _load(self) -> Loaded | Failed:
        function, failure = import_function(self._settings.entry)
        if failure is not None:
            return failure
        form = self._settings.inputs
        self._untimed = untimed_part(form, function, self._preprocess)
        self._exported = function
        return Loaded()

    def _prepare(self, request: Prepare) -> Prepared:
        if self._core is not None:
            self._core.leave()
        self._poison_results()
        self._renewal = self._snapshot = None
        self._case = request.case
        form = self._settings.inputs
        self._function = timed_part(form, self._exported, self._preprocess)
        if self._device.type == "cuda":
            torch.cuda.empty_cache()  # no case inherits the memory layout of the one before
        self._renewal = Renewal(request.case, request.seed, self._device, self._draw_arguments)
        return Prepared(self._digests())

    def _draw_arguments(self, case: Case, generator: torch.Generator) -> Arguments:
        return draw_arguments(case, generator, self._untimed)

    def _call(self) -> Called:
        with _CountedLaunches() as launches:
            self._results["call"] = self._function(*self._renewal.arguments)
            self._synchronize()
        self._launches += launches.count
        return Called(self._launches, forbidden_loaded(self._settings.folder))

    def _run(self, request: Run) -> Ran:
        self._poison_results()
        function, arguments = self._function, self._renewal.arguments
        self._settle(now=True)
        timed: TimedCalls = time_calls(
            lambda: function(*arguments),
            request.warmup,
            request.repetitions,
            self._device,
            self._held,
        )
        self._synchronize()
        self._results = {"first": timed.first, "last": timed.last}
        self._memory.put([torch.tensor(timed.samples_ms, dtype=torch.float64, device="cpu")])
        return Ran()

    def _repeat(self, request: Repeat) -> Repeated:
        function, arguments = self._function, self._renewal.arguments
        if self._snapshot is None:
            self._get_ready_to_repeat()
        self._settle()
        self._poison(self._results.pop("returned", None))

        def renew() -> None:
            seed = self._memory.wait_for_seed()
            with _no_modes():
                self._renewal.set_seed(seed)
                self._renewal.renew(request.gate)

        def keep(result: object, stream: int) -> None:
            with _no_modes():
                self._snapshot.copy(result, stream)

        timed = time_call(
            lambda: function(*arguments),
            renew,
            keep,
            self._driver,
            self._held,
            rehearsed=request.rehearsed,
        )
        with _no_modes():
            problem = self._snapshot.problem(timed.result)
            digest = "" if problem else self._snapshot.digest()
        self._results = {"returned": timed.result, "last": self._snapshot.result}
        return Repeated(timed.milliseconds, timed.busy_us, problem, digest)

    def _get_ready_to_repeat(self) -> None:
        returned = self._results.get("call")
        self._poison_results()
        self._renewal.prepare()
        self._snapshot = Snapshot(self._case, self._device, self._driver)
        # once before any is timed: kernels load at their first launch, which may wait for all of
        # the device, and so for what keeps surplus SMs busy
        self._snapshot.copy(returned, self._stream())

    def _poison_results(self) -> None:
        for returned in self._results.values():
            self._poison(returned)
        self._results.clear()

    def _poison(self, returned: object) -> None:
        """Fill a result with NaN, so that nobody takes it for a later call's."""
        if result_problem(returned, self._case, self._device) == "":
            with torch.inference_mode():  # a returned tensor may have been made in it
                for tensor in returned:
                    plain_view(tensor).fill_(torch.nan)

    def _collect(self, request: Collect) -> Collected:
        result = self._results[request.which]
        self._synchronize()
        problem = result_problem(result, self._case, self._device)
        own = [self, self._memory]
        own += filter(None, (self._driver, self._core, self._renewal, self._snapshot))
        collected = Collected(
            problem=problem,
            digests=self._digests(),
            replaced=self._guard.replaced(*own),
            forbidden=forbidden_loaded(self._settings.folder),
        )
        if not problem:
            self._memory.put([plain_view(tensor).contiguous() for tensor in result])
        return collected

    def _profile(self, request: Profile) -> Profiled:
        function, arguments = self._function, self._renewal.arguments
        return Profiled(profile_calls(lambda: function(*arguments), request.calls, self._device))

    def _gauge(self) -> Gauged:
        function, arguments = self._function, self._renewal.arguments
        return gpu_time(lambda: function(*arguments), self._device, self._held)

    def _settle(self, *, now: bool = False) -> None:
        if self._core is not None:
            self._core.settle(now=now)

    def _digests(self) -> dict[str, str]:
        return {
            name: tensor_digest(tensor)
            for name, tensor in zip(
                self._settings.inputs.names, self._renewal.arguments, strict=True
            )
            if tensor is not None
        }

    def _stream(self) -> int:
        on_cuda = self._device.type == "cuda"
        return torch.cuda.current_stream().cuda_stream if on_cuda else 0

    def _synchronize(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize()


# A default device, for one, is a mode that slows each of PyTorch's functions down.
_no_modes = torch._C.DisableTorchFunction


class _CountedLaunches:
    """Counts the launches of TileLang kernels inside a with block."""

    def __init__(self) -> None:
        self.count = 0
        self._original: Callable[..., object] | None = None

    def __enter__(self) -> _CountedLaunches:
        kernel_module = sys.modules.get("tilelang.jit.kernel")
        if kernel_module is not None:
            self._kernel_class = kernel_module.JITKernel
            self._original = original = self._kernel_class.__call__

            def counted(kernel: object, *args: object, **kwargs: object) -> object:
                self.count += 1
                return original(kernel, *args, **kwargs)

            self._kernel_class.__call__ = counted
        return self

    def __exit__(self, *_: object) -> None:
        if self._original is not None:
            self._kernel_class.__call__ = self._original


def _judge_modules() -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] in ("judge", "reference")]


def _hide_judge(judge_root: str) -> None:
    """Forget the judge's modules, so that a participant's `judge.py` is the participant's."""
    for name in _judge_modules():
        del sys.modules[name]
    sys.path[:] = [entry for entry in sys.path if entry != judge_root]


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
