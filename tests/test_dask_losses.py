"""What the Dask engine makes of workers that come, go and fail, on a cluster that is made up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from judge.engines.clusters import Cluster
from judge.engines.dask_engine import DaskEngine
from judge.engines.dask_worker import Facts, Order, Outcome, WrongWorkerError
from judge.engines.engine import (
    AtPhase,
    Began,
    Died,
    Event,
    Finished,
    Said,
    Task,
    decode_task,
    encode,
    new_setup,
)
from judge.engines.workers import Found
from judge.submission import ENTRY, submission_from
from tests.make_record import public_record
from tests.test_class_run import make_plan


class Future:
    """One order that was sent, and what becomes of it."""

    def __init__(self, order: Order, address: str) -> None:
        self.order = order
        self.address = address
        self.status = "pending"
        self.value: bytes | Exception = b""

    @property
    def task(self) -> int:
        return decode_task(self.order.task).number

    def add_done_callback(self, callback: Callable[[Future], None]) -> None:
        self._callback = callback

    def cancel(self) -> None:
        self.end("cancelled", b"")

    def end(self, status: str, value: bytes | Exception) -> None:
        self.status, self.value = status, value
        self._callback(self)

    def finish(self, event: Event | None, usable: bool = True, log: bytes = b"") -> None:
        data = encode(event) if event is not None else None
        self.end("finished", msgspec.msgpack.encode(Outcome(data, usable, log)))

    def result(self) -> bytes | Exception:
        return self.value

    exception = result


class Stage:
    """A scheduler with workers by address, an engine on it, and the orders that it has sent."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *names: str, patience_s: float = 60
    ) -> None:
        monkeypatch.setattr("judge.engines.dask_engine._REFRESH_S", 0.0)
        monkeypatch.setattr("judge.engines.dask_worker.measure", _order_itself)
        self.orders: list[Future] = []
        self.there: dict[str, str] | None = {f"tcp://{name}": name for name in names}
        self.unfit = ""
        client = SimpleNamespace(
            status="closed",
            subscribe_topic=lambda topic, handler: setattr(self, "hear", handler),
            submit=self._submit,
        )
        workers = SimpleNamespace(
            first=[found(name) for name in names],
            patience_s=patience_s,
            present=lambda: self.there,
            look=lambda addresses: [found(self.there[address]) for address in addresses],
            problem=lambda one, beside: self.unfit,
        )
        self.engine = DaskEngine(Cluster(client, "", 0.0), new_setup(make_plan()), workers)

    def _submit(
        self, function: Callable[[bytes], Order], order: bytes, **options: object
    ) -> Future:
        assert options["resources"] == {"GPU": 1}
        assert options["allow_other_workers"] is False
        (address,) = options["workers"]
        self.orders.append(Future(function(order), address))
        return self.orders[-1]

    def submit(self, *numbers: int) -> None:
        for number in numbers:
            self.engine.submit(Task(number, submission_from("x", "x", ENTRY, {ENTRY: b""})))

    def tell(self, event: Event) -> None:
        self.hear((0.0, encode(event)))


def _order_itself(order: bytes) -> Order:
    """In place of having it measured."""
    return msgspec.msgpack.decode(order, type=Order)


def found(name: str) -> Found:
    return Found(f"tcp://{name}", name, Facts(f"token of {name}", "host", {}, None))


def done(number: int, lane: str, lost: str = "") -> Finished:
    return Finished(number, lane, None, "the judge failed", lost, 1.0)


def test_each_worker_has_one_task_and_is_told_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, "a", "b")
    assert stage.engine.room() == 4
    stage.submit(1, 2, 3, 4, 5)
    assert stage.engine.wait(0.0) == []
    assert stage.engine.room() == 0
    assert [(o.address, o.task) for o in stage.orders] == [("tcp://a", 1), ("tcp://b", 2)]
    assert [decode_task(o.order.ahead).number for o in stage.orders] == [3, 4]
    assert [o.order.token for o in stage.orders] == ["token of a", "token of b"]
    stage.tell(Began(2, "b"))
    stage.orders[1].finish(done(2, "b"))
    assert stage.engine.wait(0.0) == [Began(2, "b"), done(2, "b")]
    stage.engine.wait(0.0)
    assert (stage.orders[2].address, stage.orders[2].task) == ("tcp://b", 4)
    assert decode_task(stage.orders[2].order.ahead).number == 5


def test_a_lost_workers_task_has_died_and_its_next_one_goes_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch, "a", "b")
    stage.submit(1, 2, 3)
    stage.engine.wait(0.0)
    del stage.there["tcp://a"]
    assert stage.engine.wait(0.0) == [Began(1, "a"), Died(1, "a", "its worker is lost")]
    assert stage.orders[0].status == "cancelled"
    assert stage.engine.lanes() == ["b"]
    stage.orders[0].finish(done(1, "a"))  # too late: it may be under way elsewhere
    stage.tell(AtPhase(1, "timing"))
    assert stage.engine.wait(0.0) == []
    stage.orders[1].finish(done(2, "b"))
    stage.engine.wait(0.0)
    stage.engine.wait(0.0)
    assert (stage.orders[2].address, stage.orders[2].task) == ("tcp://b", 3)


def test_another_process_at_a_workers_address_is_a_lost_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch, "a", "b")
    stage.submit(1)
    stage.engine.wait(0.0)
    stage.orders[0].end("error", WrongWorkerError("replaced"))
    assert stage.engine.wait(0.0) == [Began(1, "a"), Died(1, "a", "its worker is lost")]


def test_a_worker_that_cannot_do_a_task_is_given_none_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch, "a")
    stage.submit(1)
    stage.engine.wait(0.0)
    stage.orders[0].end("error", RuntimeError("no such module"))
    reason = "its worker failed: RuntimeError: no such module"
    died = [Began(1, "a"), Died(1, "a", reason), Said("a", f"left out: {reason}")]
    assert stage.engine.wait(0.0) == died
    stage.engine.wait(0.0)
    assert stage.engine.lanes() == []


def test_the_last_worker_is_waited_for_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    for patience_s, lanes in ((60, ["the next worker"]), (0, [])):
        stage = Stage(monkeypatch, "a", patience_s=patience_s)
        stage.there = {}
        stage.engine.wait(0.0)
        assert stage.engine.lanes() == lanes
        assert stage.engine.room() == 0
    stage = Stage(monkeypatch, "a")
    stage.there = {}
    stage.engine.wait(0.0)
    stage.there = {"tcp://c": "c"}
    while stage.engine.lanes() != ["c"]:
        stage.engine.wait(0.01)
    stage.submit(1)
    stage.engine.wait(0.0)
    assert stage.orders[0].address == "tcp://c"


def test_a_worker_that_joins_and_does_not_fit_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, "a")
    stage.unfit = "torch 1 there, 2 here"
    stage.there["tcp://z"] = "z"
    events: list[Event] = []
    while not events:
        events = stage.engine.wait(0.01)
    assert events == [Said("z", "left out: torch 1 there, 2 here")]
    stage.engine.wait(0.01)
    assert stage.engine.lanes() == ["a"]


def test_a_lane_whose_device_is_lost_ends_the_run_where_it_is_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch, "a")
    stage.submit(1, 2)
    stage.engine.wait(0.0)
    stage.orders[0].finish(done(1, "a", lost="wedged"), usable=False)
    assert stage.engine.wait(0.0) == [Began(1, "a"), done(1, "a", lost="wedged")]
    assert stage.engine.lanes() == []


def test_without_its_scheduler_the_run_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, "a", "b")
    stage.submit(1)
    stage.engine.wait(0.0)
    stage.there = None
    events = stage.engine.wait(0.0)
    assert events[0] == Said("dask", "the scheduler answers no more")
    assert events[-1] == Died(1, "a", "the scheduler answers no more")
    assert stage.engine.lanes() == []


def test_a_log_is_brought_here_and_a_result_stays_where_it_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GDN_JUDGE_CACHE", str(tmp_path))
    stage = Stage(monkeypatch, "a")
    record = public_record()
    record = replace(record, submission=replace(record.submission, log="/elsewhere/x.log"))
    kept: list[str] = []
    for number in (1, 2):
        stage.submit(number)
        stage.engine.wait(0.0)
        finished = Finished(number, "a", record, "", "", 1.0)
        stage.orders[-1].finish(finished, log=b"what it printed")
        _, event = stage.engine.wait(0.0)
        kept.append(event.record.submission.log)
        (tmp_path / "logs").mkdir(exist_ok=True)  # there for the second one alone
    here = tmp_path / "logs" / "x.log"
    assert kept == ["/elsewhere/x.log", str(here)]
    assert here.read_bytes() == b"what it printed"
