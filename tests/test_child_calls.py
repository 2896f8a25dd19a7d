"""What the child does around a timed call: garbage, copies, and what counts as a result."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

from judge.child.calls import time_call
from judge.child.results import plain_addresses, result_problem
from judge.child.snapshot import Snapshot
from tests.trial import verdict_cases

CPU = torch.device("cpu")
CASE = replace(verdict_cases()[0], batch=1, tokens=3, v_heads=2)


def result_of(value: float) -> tuple[torch.Tensor, torch.Tensor]:
    output = torch.full((1, 3, 2, 128), value, dtype=torch.bfloat16)
    return output, torch.full((1, 2, 128, 128), value)


@pytest.fixture
def collecting() -> Iterator[None]:
    yield
    gc.enable()


def test_garbage_is_looked_for_in_the_call_alone(collecting: None) -> None:
    seen: list[tuple[str, bool]] = []

    def note(name: str) -> None:
        seen.append((name, gc.isenabled()))

    time_call(lambda: note("call"), lambda: note("renew"), lambda *_: note("keep"), None)
    assert seen == [("renew", False), ("call", True), ("keep", False)]
    assert gc.isenabled()


def test_whether_garbage_is_looked_for_stays_the_submission_s_choice(collecting: None) -> None:
    time_call(gc.disable, lambda: None, lambda *_: None, None)
    assert not gc.isenabled()
    time_call(lambda: None, lambda: None, lambda *_: None, None)
    assert not gc.isenabled()
    time_call(gc.enable, lambda: None, lambda *_: None, None)
    assert gc.isenabled()


def test_garbage_is_looked_for_again_after_a_call_that_fails(collecting: None) -> None:
    with pytest.raises(ZeroDivisionError):
        time_call(lambda: 1 / 0, lambda: None, lambda *_: None, None)
    assert gc.isenabled()


def test_a_rehearsal_is_a_whole_call_before_the_renewal(collecting: None) -> None:
    seen: list[str] = []
    results = iter(["rehearsal", "timed"])

    def call() -> str:
        seen.append("call")
        return next(results)

    @contextmanager
    def held() -> Iterator[None]:
        seen.append("hold")
        yield

    def keep(result: object, stream: int) -> None:
        assert stream == 0
        seen.append(result)

    timed = time_call(call, lambda: seen.append("renew"), keep, None, held, rehearsed=True)
    assert timed.result == "timed"
    assert seen == ["call", "rehearsal", "renew", "hold", "call", "timed"]


def test_results_are_copied_behind_the_stop_event_before_anything_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[str] = []
    names = iter(["start", "end", "kept"])

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing
            self.name = next(names)

        def record(self) -> None:
            steps.append(self.name)

        def synchronize(self) -> None:
            steps.append(f"wait for {self.name}")

        def elapsed_time(self, later: Event) -> float:
            return {("start", "end"): 3.0, ("end", "kept"): 0.25}[self.name, later.name]

    @contextmanager
    def held() -> Iterator[None]:
        steps.append("hold")
        yield
        steps.append("let go")

    class Stream:
        cuda_stream = 7

    class Driver:
        def record(self, event: Event, stream: int) -> None:
            steps.append(f"{event.name} on {stream}")

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: steps.append("wait for all"))

    def call() -> str:
        steps.append("call")
        return "result"

    def keep(result: object, stream: int) -> None:
        steps.append(f"copy {result} on {stream}")

    timed = time_call(call, lambda: steps.append("renew"), keep, Driver(), held)
    before = ["renew", "end", "kept", "wait for all", "hold", "start", "call", "end on 7"]
    after = ["copy result on 7", "kept on 7", "wait for kept", "let go", "wait for all"]
    assert steps == before + after
    assert (timed.milliseconds, timed.result) == (3.0, "result")
    assert timed.busy_us >= 250.0  # the copies, and what was waited for after them


def test_looking_at_a_result_runs_no_method_of_its_own() -> None:
    output, state = result_of(1.0)
    asked: list[str] = []
    for name in ("is_neg", "is_conj", "detach", "untyped_storage"):
        setattr(output, name, lambda name=name: asked.append(name))
    assert result_problem((output, state), CASE, CPU) == ""
    snapshot = Snapshot(CASE, CPU, None)
    snapshot.copy((output, state), 0)
    assert snapshot.problem((output, state)) == ""
    assert plain_addresses((output, state), snapshot.result) is not None
    assert asked == []
    assert torch.equal(snapshot.result[0], torch.ones_like(snapshot.result[0]))


def test_a_result_in_the_judge_s_copies_is_none() -> None:
    snapshot = Snapshot(CASE, CPU, None)
    output, state = result_of(1.0)
    own_output, own_state = snapshot.result

    def told(*result: torch.Tensor) -> str:
        snapshot.copy(result, 0)
        return snapshot.problem(result)

    assert told(own_output, state).startswith("output lies where")
    assert told(output, own_state.view_as(own_state)).startswith("final_state lies")
    # as views of one piece of memory, in either order, results are as good as any others
    piece = torch.zeros(2 * state.numel())
    assert told(output, piece[: state.numel()].view_as(state)) == ""
    assert told(output, piece[state.numel() :].view_as(state)) == ""


class Copies:
    """Stands for the CUDA driver: notes what it is told to copy."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int, int, int]] = []

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        self.told.append((target, source, size, stream))


def test_plain_results_go_to_the_driver_as_bytes() -> None:
    driver = Copies()
    snapshot = Snapshot(CASE, CPU, driver)
    output, state = result_of(1.0)
    snapshot.copy([output, torch.nn.Parameter(state)], 7)
    (kept_output, kept_state) = (kept.data_ptr() for kept in snapshot.result)
    assert driver.told == [
        (kept_output, output.data_ptr(), 3 * 2 * 128 * 2, 7),
        (kept_state, state.data_ptr(), 2 * 128 * 128 * 4, 7),
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda output, state: (output.expand(1, 3, 2, 128).mT.contiguous().mT, state),
        lambda output, state: (output[:, :2], state),
        lambda output, state: (output.float(), state),
        lambda output, state: (output, "state"),
        lambda output, state: (output,),
        lambda output, state: None,
    ],
    ids=["strided", "shape", "dtype", "no tensor", "one", "none"],
)
def test_what_else_is_returned_never_goes_there(
    change: Callable[[torch.Tensor, torch.Tensor], object],
) -> None:
    driver = Copies()
    snapshot = Snapshot(CASE, CPU, driver)
    result = change(*result_of(1.0))
    snapshot.copy(result, 7)
    assert driver.told == []
    copied = torch.equal(snapshot.result[0], torch.ones_like(snapshot.result[0]))
    assert copied == (snapshot.problem(result) == "")


def test_what_was_put_right_behind_the_call_was_never_copied() -> None:
    snapshot = Snapshot(CASE, CPU, Copies())
    result: list[object] = [None, None]
    snapshot.copy(result, 7)
    result[:] = result_of(1.0)
    changed = "what was returned is no longer what it was when the call ended"
    assert snapshot.problem(result) == changed
    snapshot.copy(result, 7)
    assert snapshot.problem(result) == ""
    result[:] = result_of(1.0)
    assert snapshot.problem(result) == changed


def test_copies_stay_as_they_were_when_the_result_changes() -> None:
    snapshot = Snapshot(CASE, CPU, None)
    output, state = result_of(1.0)
    snapshot.copy((output, state), 0)
    before = snapshot.digest()
    output.zero_()
    assert snapshot.digest() == before
    snapshot.copy((output, state), 0)
    assert snapshot.digest() != before
