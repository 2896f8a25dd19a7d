"""Waiting for a request: awake for a while, then asleep, and until the judge has gone."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from judge.child.protocol import Call, Repeat, encode, receive_request


@pytest.mark.parametrize("awake_s", [0.0, 0.05, 5.0])
def test_requests_are_read_whole_while_awake_and_after(awake_s: float) -> None:
    judge, child = socket.socketpair()
    data = encode(Call()) + encode(Repeat("mixed", True, False)) + encode(Repeat(None, False, True))
    with judge, child:
        judge.sendall(data[:9])
        late = threading.Timer(0.2, judge.sendall, [data[9:]])
        late.start()
        assert receive_request(child, awake_s) == Call()
        assert receive_request(child, awake_s) == Repeat("mixed", True, False)
        assert receive_request(child, awake_s) == Repeat(None, False, True)


def test_waiting_awake_takes_the_core_and_ends() -> None:
    judge, child = socket.socketpair()
    with judge, child:
        late = threading.Timer(0.5, judge.sendall, [encode(Call())])
        late.start()
        before = time.thread_time()
        assert receive_request(child, 0.1) == Call()
        assert 0.02 < time.thread_time() - before < 0.4


def test_judge_that_has_gone_is_noticed_while_awake() -> None:
    judge, child = socket.socketpair()
    with child:
        judge.close()
        with pytest.raises(EOFError):
            receive_request(child, 5.0)
