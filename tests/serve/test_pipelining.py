"""HTTP requests that are sent ahead of the answers to those before them."""

from __future__ import annotations

import socket
import ssl
from urllib.parse import urlsplit

import pytest

from tacit.serve.header_limits import MOST_AHEAD

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.fixture
def exchange(served):
    """Sends some bytes, and returns all that comes back."""
    place = urlsplit(served.http)

    def sent(data: bytes) -> bytes:
        tls = ssl.create_default_context(cafile=served.cafile)
        with (
            socket.create_connection((place.hostname, place.port), timeout=30) as plain,
            tls.wrap_socket(plain, server_hostname=place.hostname) as connection,
        ):
            found = b""
            try:
                connection.sendall(data)
                while part := connection.recv(65536):
                    found += part
            except (ConnectionError, ssl.SSLError):
                pass  # closed before all was sent
            return found

    return sent


def test_a_few_requests_sent_ahead_are_answered(exchange):
    last = REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    found = exchange(REQUEST * (MOST_AHEAD - 1) + last)
    assert found.count(b"HTTP/1.1 200") == MOST_AHEAD


@pytest.mark.slow
def test_a_connection_that_sends_thousands_ahead_is_closed(exchange):
    found = exchange(REQUEST * 5_000)
    assert found.count(b"HTTP/1.1 200") <= MOST_AHEAD + 1
    assert exchange(REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")).count(b"HTTP/1.1 200") == 1
