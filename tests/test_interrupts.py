"""An interrupt in the middle of a run: what is finished is kept, whenever it comes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge.class_run import ClassRun, Ended, grade_class
from judge.engines.engine import Event
from judge.interrupts import put_off_interrupts
from judge.run_log import RunLog
from judge.sources import Listed
from judge.store.store import Store
from judge.uploads import find_uploads
from tests.test_class_run import NAMES, Quiet, StandInEngine, graded, make_plan


class Interrupter:
    """A thread that takes the signal itself, as native threads do, which mask none."""

    def __init__(self) -> None:
        self._wanted, self._sent = threading.Event(), threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def interrupt(self) -> None:
        """Send this process a SIGINT, once; returns when it has been taken."""
        self._wanted.set()
        assert self._sent.wait(10)

    def _serve(self) -> None:
        self._wanted.wait()
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        self._sent.set()


class AllAtOnce(StandInEngine):
    """Hands over all that it was given in one batch."""

    def wait(self, timeout_s: float) -> list[Event]:
        events: list[Event] = []
        while self._tasks:
            events += super().wait(timeout_s)
        return events


@pytest.fixture
def heeded_interrupt() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, also where a shell's background job was born ignoring it."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.fixture
def interrupter(heeded_interrupt: None) -> Interrupter:
    return Interrupter()


def run(folder: Path) -> tuple[Ended, list[str]]:
    """Grade three uploads, of which the engine takes two at a time; who has a result then."""
    (folder / "in").mkdir()
    for name in NAMES:
        (folder / "in" / f"{name}.py").write_text(f"x = '{name}'\n")
    with Store(folder / "store.sqlite") as store:
        engine, log = AllAtOnce(graded), RunLog(None)
        class_run = ClassRun(make_plan(), engine, None, store, None, Quiet(), log, fresh=False)
        ended = grade_class(class_run, Listed(find_uploads(folder / "in")))
        assert engine.closed
        return ended, [one.participant for one in store.results()]


def test_an_interrupt_while_a_result_is_written_loses_none_of_its_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupter: Interrupter
) -> None:
    insert = Store._insert

    def disturbed(store: Store, statement: str, values: tuple[object, ...]) -> int:
        interrupter.interrupt()
        return insert(store, statement, values)

    monkeypatch.setattr(Store, "_insert", disturbed)
    ended, kept = run(tmp_path)
    assert (ended.interrupted, kept) == (True, ["a", "b"])


def test_an_interrupt_between_engine_and_store_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupter: Interrupter
) -> None:
    wait = AllAtOnce.wait

    def disturbed(engine: AllAtOnce, timeout_s: float) -> list[Event]:
        events = wait(engine, timeout_s)
        interrupter.interrupt()
        return events

    monkeypatch.setattr(AllAtOnce, "wait", disturbed)
    ended, kept = run(tmp_path)
    assert (ended.interrupted, kept) == (True, ["a", "b"])


def test_handlers_are_as_before_and_ignored_signals_stay_ignored(heeded_interrupt: None) -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        with put_off_interrupts() as interrupts:
            signal.raise_signal(signal.SIGTERM)
        assert not interrupts.came
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is interrupt
    finally:
        signal.signal(signal.SIGTERM, before)
    with pytest.raises(KeyboardInterrupt), put_off_interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)  # in this thread: at once
        assert interrupts.came
    assert signal.getsignal(signal.SIGINT) is interrupt
