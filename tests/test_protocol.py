"""Waiting for a request: awake for a while, then asleep, and until the judge has gone."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from judge.child.protocol import Repeat, Warm, encode, receive_request


@pytest.mark.parametrize("awake_s", [0.0, 0.05, 5.0])
def test_request_is_read_whole_while_awake_and_after(awake_s: float) -> None:
    judge, child = socket.socketpair()
    with judge, child:
        late = threading.Timer(0.2, judge.sendall, [encode(Warm()) + encode(Repeat(7, "mixed"))])
        late.start()
        assert receive_request(child, awake_s) == Warm()
        assert receive_request(child, awake_s) == Repeat(7, "mixed")


def test_waiting_awake_takes_the_core_and_ends() -> None:
    judge, child = socket.socketpair()
    with judge, child:
        late = threading.Timer(0.5, judge.sendall, [encode(Warm())])
        late.start()
        before = time.thread_time()
        assert receive_request(child, 0.1) == Warm()
        assert 0.02 < time.thread_time() - before < 0.4


def test_judge_that_has_gone_is_noticed_while_awake() -> None:
    judge, child = socket.socketpair()
    with child:
        judge.close()
        with pytest.raises(EOFError):
            receive_request(child, 5.0)
