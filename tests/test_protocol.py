"""Reading requests: whole, one after the other, until the judge has gone."""

from __future__ import annotations

import socket
import threading

import pytest

from judge.child.protocol import Call, Repeat, encode, receive_request


def test_requests_that_come_in_pieces_and_together_are_read_whole() -> None:
    judge, child = socket.socketpair()
    data = encode(Call()) + encode(Repeat(7, "mixed")) + encode(Repeat(None, None))
    with judge, child:
        judge.sendall(data[:9])
        late = threading.Timer(0.2, judge.sendall, [data[9:]])
        late.start()
        assert receive_request(child) == Call()
        assert receive_request(child) == Repeat(7, "mixed")
        assert receive_request(child) == Repeat(None, None)


def test_judge_that_has_gone_is_noticed() -> None:
    judge, child = socket.socketpair()
    with child:
        judge.close()
        with pytest.raises(EOFError):
            receive_request(child)
