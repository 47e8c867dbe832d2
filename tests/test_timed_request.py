"""Requests that end in time: connections are shut down, those opened too late included."""

from __future__ import annotations

import socket
import threading
import time
import urllib.request

import pytest

from tacit.timed_request import ConnectionDeadline, build_opener, call_within


def read_one(address, deadline):
    try:
        with build_opener(deadline).open(urllib.request.Request(address), timeout=30) as response:
            return response.read()
    except OSError as problem:
        return type(problem).__name__


def test_what_comes_in_time_is_returned():
    assert call_within(5, lambda deadline: 3) == 3
    assert call_within(5, lambda deadline: deadline.is_connected) is False


@pytest.mark.slow
def test_a_peer_that_says_nothing_holds_nothing():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        before, begin = threading.active_count(), time.monotonic()
        assert call_within(0.2, lambda deadline: read_one(address, deadline)) is None
        assert time.monotonic() - begin < 20  # of the half minute that the request itself would wait
        until = time.monotonic() + 30
        while threading.active_count() > before:  # the thread reads the end, and ends
            assert time.monotonic() < until
            time.sleep(0.02)


def test_a_connection_that_comes_too_late_is_closed():
    deadline = ConnectionDeadline()
    deadline.expire()
    with socket.create_server(("127.0.0.1", 0)) as peer, pytest.raises(TimeoutError):
        deadline.connect(peer.getsockname())
    assert deadline.is_connected
