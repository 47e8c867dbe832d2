"""The client's address behind named proxies, and the groups that rates are counted for."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import ParameterError
from tacit.serve.addresses import LOOPBACK, address_group, client_address, networks_of

PROXIES = networks_of(["192.0.2.7", "2001:db8::1", "198.51.100.0/28"])


@pytest.mark.parametrize(
    ("peer", "header", "client"),
    [
        ("203.0.113.5", "", "203.0.113.5"),
        ("203.0.113.5", "198.51.100.99", "203.0.113.5"),  # nobody asked this peer
        ("10.1.2.3", "198.51.100.99", "10.1.2.3"),  # a private address is not a proxy
        ("127.0.0.1", "198.51.100.99", "127.0.0.1"),
        ("192.0.2.7", "", "192.0.2.7"),
        ("192.0.2.7", "203.0.113.9", "203.0.113.9"),
        ("192.0.2.7", "6.6.6.6, 203.0.113.9", "203.0.113.9"),  # the client wrote 6.6.6.6 itself
        ("192.0.2.7", "203.0.113.9, 198.51.100.3", "203.0.113.9"),  # two proxies
        ("192.0.2.7", "6.6.6.6, 203.0.113.9, 198.51.100.3", "203.0.113.9"),
        ("192.0.2.7", "203.0.113.9, unknown", "192.0.2.7"),
        ("192.0.2.7", "203.0.113.9, nonsense, 198.51.100.3", "198.51.100.3"),
        ("192.0.2.7", "203.0.113.9:4711", "203.0.113.9"),
        ("192.0.2.7", "[2001:db8:5::6]:443", "2001:db8:5::6"),
        ("2001:0db8::0001", "2001:db8:5::6", "2001:db8:5::6"),
        ("::ffff:192.0.2.7", "203.0.113.9", "203.0.113.9"),
        ("fe80::1%eth0", "203.0.113.9", "fe80::1"),
        ("", "203.0.113.9", ""),
    ],
)
def test_only_a_named_proxy_is_believed(peer, header, client):
    assert client_address(peer, header, PROXIES) == client


@given(st.text(max_size=60), st.lists(st.ip_addresses().map(str), max_size=4))
def test_whatever_a_client_writes_before_its_own_address_changes_nothing(forged, more):
    own = "203.0.113.9"
    header = ", ".join([forged, *more, own])
    assert client_address("192.0.2.7", header, PROXIES) == own


def test_a_group_is_an_ipv4_address_or_what_one_subscriber_has():
    assert address_group("203.0.113.9") == address_group("::ffff:203.0.113.9") == "203.0.113.9"
    assert address_group("::ffff:cb00:7109") == address_group("64:ff9b::203.0.113.9") == "203.0.113.9"
    assert address_group("2001:db8:1:2::1") == address_group("2001:DB8:1:2:ffff::9%eth0") == "2001:db8:1:2::/64"
    assert address_group("2001:db8:1:3::1") != address_group("2001:db8:1:2::1")
    assert address_group("") == address_group("/run/socket") == "-"


@given(st.integers(0, 2**61 - 1), st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=2))
def test_all_addresses_of_a_subscriber_are_one_group(network, hosts):
    # 2000::/3 is all that is assigned to anyone; IPv4 in other words lies elsewhere
    one, other = (address_group(str(ipaddress.IPv6Address((1 << 125) + (network << 64) + host))) for host in hosts)
    assert one == other and one.endswith("/64")


def test_proxies_are_configured_by_address():
    assert [str(network) for network in networks_of(["192.0.2.7", " ::1 ", "::ffff:10.0.0.0/104"])] == [
        "192.0.2.7/32",
        "::1/128",
        "10.0.0.0/8",
    ]
    for wrong in ("proxy.example", "0.0.0.0/0", "::/0", "192.0.2.1/24", "", "::ffff:0.0.0.0/96"):
        with pytest.raises(ParameterError):
            networks_of([wrong])
    assert client_address("127.0.0.1", "203.0.113.9", LOOPBACK) == "203.0.113.9"
    assert client_address("127.0.0.2", "203.0.113.9", LOOPBACK) == "127.0.0.2"
