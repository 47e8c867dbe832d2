"""Whose request it is: the client's address behind proxies that are named, and the group that one rate is for.

>>> proxies = networks_of(["192.0.2.7"])
>>> client_address("192.0.2.7", "203.0.113.9, 198.51.100.4", proxies)  # what the proxy itself saw is last
'198.51.100.4'
>>> client_address("192.0.2.8", "198.51.100.4", proxies)  # not a proxy: its header is ignored
'192.0.2.8'
>>> address_group("::ffff:198.51.100.4"), address_group("2001:db8:1:2:3:4:5:6")
('198.51.100.4', '2001:db8:1:2::/64')
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence

from tacit.errors import ParameterError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

LOOPBACK: tuple[Network, ...] = (ipaddress.ip_network("127.0.0.1"), ipaddress.ip_network("::1"))
"""A proxy on this machine: no packet from elsewhere has these as its source."""

UNKNOWN = "-"  # the group of a peer without an address, such as a Unix socket
_EMBEDDED = ipaddress.IPv6Network("64:ff9b::/96")  # IPv4 behind a translator (RFC 6052)
_PORT = re.compile(r"\[(?P<six>[0-9a-fA-F:.]+)\](?::[0-9]{1,5})?|(?P<four>[0-9.]+):[0-9]{1,5}")
_SUBSCRIBER = 64  # bits of an IPv6 address that a network assigns; its user chooses the others at will


def networks_of(given: Iterable[str], name: str = "proxy") -> tuple[Network, ...]:
    """Return the networks that proxies were configured as: addresses, or networks such as 10.1.2.0/24."""
    found: list[Network] = []
    for text in given:
        try:
            network = ipaddress.ip_network(text.strip())
        except ValueError as error:
            what = f"{text[:60]!r} is not an address or a network"
            raise ParameterError(name, what, fix=f"--{name} 192.0.2.7, or --{name} 192.0.2.0/28") from error
        if isinstance(network, ipaddress.IPv6Network) and network.prefixlen >= 96:
            mapped = network.network_address.ipv4_mapped
            network = ipaddress.IPv4Network((mapped, network.prefixlen - 96)) if mapped is not None else network
        if network.prefixlen == 0:
            what = f"{text[:60]} is every address: anyone could pretend to be anyone"
            raise ParameterError(name, what, fix=f"name the proxy alone: --{name} 192.0.2.7")
        found.append(network)
    return tuple(found)


def client_address(peer: str, forwarded_for: str, trusted: Sequence[Network]) -> str:
    """Return the address of whoever sent a request, by the X-Forwarded-For header of trusted proxies only.

    Each proxy appends the address that it saw, so the header is read from its end, for as long as the one who wrote an
    entry is trusted: whatever the client itself wrote stands before its own address and is never reached. An entry that
    is not an address ends the walk at the proxy that wrote it. `peer` is the other end of the connection, and
    `forwarded_for` the header, its lines joined by commas.
    """
    client = _address(peer)
    if client is None:
        return peer
    for entry in reversed(forwarded_for.split(",")):
        if not _is_trusted(client, trusted):
            break
        earlier = _address(_without_port(entry.strip()))
        if earlier is None:
            break
        client = earlier
    return str(client)


def is_trusted(address: str, trusted: Sequence[Network]) -> bool:
    """Return whether an address is that of a trusted proxy."""
    found = _address(address)
    return found is not None and _is_trusted(found, trusted)


def address_group(address: str) -> str:
    """Return what limits are counted for: an IPv4 address, or the /64 network of an IPv6 address.

    One subscriber has at least 2^64 IPv6 addresses, so a limit for each of them would be none.
    """
    found = _address(address)
    if found is None:
        return UNKNOWN
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(ipaddress.IPv6Network((int(found), _SUBSCRIBER), strict=False))


def _is_trusted(address: Address, trusted: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in trusted)


def _address(text: str) -> Address | None:
    """Return an address without its zone; IPv4 that is written as IPv6 as what it is."""
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return found.ipv4_mapped
        if found in _EMBEDDED:
            return ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
    return found


def _without_port(entry: str) -> str:
    found = _PORT.fullmatch(entry)
    return entry if found is None else found["six"] or found["four"]
