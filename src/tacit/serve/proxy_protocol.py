"""The PROXY protocol, versions 1 and 2: a proxy's first bytes on a connection say whose connection it is.

Its word is taken only from proxies that the owner named; from them it must come.
https://www.haproxy.org/download/1.8/doc/proxy-protocol.txt
"""

from __future__ import annotations

import asyncio
import ipaddress

_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"  # of version 2, twelve bytes
_LONGEST = 107  # bytes of a line of version 1
_LARGEST = 1024  # bytes after the head of version 2; what follows the addresses is not for us
_FOUR, _SIX = 0x11, 0x21  # TCP over IPv4 and over IPv6


class NotProxied(Exception):
    """The connection does not begin as a proxy's must."""


async def client_of(reader: asyncio.StreamReader, peer: str) -> str:
    """The address of the client that a proxy speaks for; `peer` itself where it says that it speaks for itself."""
    try:
        first = await reader.readexactly(len(_SIGNATURE))
        if first == _SIGNATURE:
            return await _binary(reader, peer)
        return await _line(first, reader, peer)
    except (asyncio.IncompleteReadError, ValueError) as error:
        raise NotProxied from error


async def _binary(reader: asyncio.StreamReader, peer: str) -> str:
    command, family, *length = await reader.readexactly(4)
    size = int.from_bytes(bytes(length))
    if command >> 4 != 2 or command & 15 > 1 or size > _LARGEST:
        raise NotProxied
    body = await reader.readexactly(size)
    if command & 15 == 0:  # LOCAL: a check of the proxy's own
        return peer
    if family == _FOUR and size >= 12:
        return str(ipaddress.IPv4Address(body[:4]))
    if family == _SIX and size >= 36:
        return str(ipaddress.IPv6Address(body[:16]))
    return peer


async def _line(first: bytes, reader: asyncio.StreamReader, peer: str) -> str:
    line = first
    while not line.endswith(b"\r\n"):
        if len(line) >= _LONGEST or not line.startswith(b"PROXY "):
            raise NotProxied
        line += await reader.readexactly(1)
    words = line[:-2].decode("ascii").split(" ")
    if words[1] == "UNKNOWN":
        return peer
    if words[1] not in {"TCP4", "TCP6"} or len(words) != 6:
        raise NotProxied
    return str(ipaddress.ip_address(words[2]))
