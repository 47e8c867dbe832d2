"""A new password ends what was opened with the old one: sessions at work, idle ones, and logins that had begun."""

from __future__ import annotations

import select

import pytest

from tacit.serve import credentials

pytestmark = pytest.mark.slow

SYNC = b"S\0\0\0\4"


@pytest.fixture
def vera(served):
    """Someone who may look at the catalog: the file that lets her in."""
    roster = credentials.credentials_path(served.folder / "clinic.toml")
    served.passwords["vera"] = credentials.add_credential(roster, "vera", credentials.Role.AUDITOR).password
    yield roster
    if credentials.read_credentials(roster).find("vera") is not None:
        credentials.revoke_credential(roster, "vera")


def ending(client):
    """The last words of a connection that is closed."""
    kinds = client.until(b"")
    return next(body for kind, body in kinds if kind == b"E")


def test_a_session_ends_at_its_next_message_whatever_it_is(raw, vera):
    for message in (SYNC, b"H\0\0\0\4", b"Q\0\0\0\rSELECT 1\0", b"E\0\0\0\t\0\0\0\0\1"):
        with raw() as client:
            client.login("vera")
            client.query("BEGIN")
            client.send(b"P", b"\0SELECT i FROM generate_series(1, 9) AS g(i)\0\0\0")
            client.send(b"B", b"\0\0\0\0\0\0\0\0")
            client.send(b"E", b"\0\0\0\0\1")  # eight more rows are there
            client.socket.sendall(SYNC)
            client.until(b"Z")
            client.served.passwords["vera"] = credentials.rotate_credential(vera, "vera").password
            client.socket.sendall(message)
            last = ending(client)
            assert b"28000" in last and b"was changed" in last and b"FATAL" in last


def test_an_idle_session_ends_by_itself(raw, vera):
    with raw() as rotated, raw() as other:
        rotated.login("vera")
        other.login("ada")
        credentials.rotate_credential(vera, "vera")
        assert b"was changed" in ending(rotated)
        assert dict(other.query("SELECT 1"))[b"C"] == b"SELECT 1\0"
    with raw() as revoked:
        revoked.served.passwords["vera"] = credentials.rotate_credential(vera, "vera").password
        revoked.login("vera")
        credentials.revoke_credential(vera, "vera")
        assert b"let in no longer" in ending(revoked)


def test_a_login_that_began_with_the_old_password_opens_nothing(raw, vera):
    with raw() as client:
        send = client.send

        def late(kind, body=b""):
            if body.startswith(b"c="):  # the proof, which is right for the old password
                credentials.rotate_credential(vera, "vera")
            send(kind, body)

        client.send = late
        found = client.login("vera")
        assert found[0][0] == b"E" and b"28000" in found[0][1]


def test_a_session_that_was_opened_by_the_new_password_stays(raw, vera):
    with raw() as client:
        client.served.passwords["vera"] = credentials.rotate_credential(vera, "vera").password
        client.login("vera")
        assert not select.select([client.socket], [], [], 1.5)[0]  # longer than from one look to the next
        assert dict(client.query("SELECT 1"))[b"C"] == b"SELECT 1\0"
