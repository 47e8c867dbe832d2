"""The ledger's key: made once, kept private, and what it signs."""

from __future__ import annotations

import os
import stat

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.forks import in_child, outcome

from tacit.errors import Code, LedgerError
from tacit.ledger.keys import Key, is_signed

HEAD = "5eed" * 16


def test_a_key_is_made_once_and_read_again(tmp_path):
    key = Key.at(tmp_path / "key", create=True)
    assert Key.at(tmp_path / "key", create=True).public == key.public
    assert Key.at(tmp_path / "key", create=False).public == key.public
    assert [file.name for file in tmp_path.iterdir()] == ["key"]  # no draft is left behind


def test_only_its_owner_may_read_a_key(tmp_path):
    Key.at(tmp_path / "key", create=True)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_of_many_who_make_a_key_at_once_all_use_one(tmp_path):
    start, go = os.pipe()
    told, tell = os.pipe()

    def work() -> int:
        os.read(start, 1)
        os.write(tell, Key.at(tmp_path / "key", create=True).public.encode() + b"\n")
        return 0

    children = [in_child(work) for _ in range(8)]
    os.write(go, b"12345678")
    assert [outcome(child) for child in children] == [0] * 8
    os.close(tell)
    with os.fdopen(told) as seen:
        assert set(seen.read().split()) == {Key.at(tmp_path / "key", create=False).public}
    os.close(start)
    os.close(go)


def test_a_signature_is_of_one_head_by_one_key(tmp_path):
    key, other = (Key.at(tmp_path / name, create=True) for name in ("one", "two"))
    signature = key.sign(HEAD)
    assert is_signed(HEAD, signature, key.public)
    assert not is_signed(HEAD[:-1] + "0", signature, key.public)
    assert not is_signed(HEAD, signature, other.public)
    assert not is_signed(HEAD, other.sign(HEAD), key.public)
    assert not is_signed(HEAD, signature[:-1] + ("0" if signature[-1] != "0" else "1"), key.public)


@pytest.mark.parametrize(("signature", "public"), [("", ""), ("no", "no"), ("00", "00" * 32), ("é" * 64, "é" * 32)])
def test_what_is_no_signature_is_none(signature, public):
    assert not is_signed(HEAD, signature, public)


def rsa_key() -> bytes:
    private = rsa.generate_private_key(65537, 2048)
    how = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return private.private_bytes(*how)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (lambda: None, "is missing"),
        (lambda: b"", "is not a key"),
        (lambda: b"under the mat", "is not a key"),
        (rsa_key, "is a key of another kind"),
    ],
)
def test_a_key_that_is_none(tmp_path, content, what):
    data = content()
    if data is not None:
        (tmp_path / "key").write_bytes(data)
    with pytest.raises(LedgerError, match=what) as error:
        Key.at(tmp_path / "key", create=False)
    assert error.value.code is Code.LEDGER_KEY
    assert error.value.fix


def test_a_key_that_cannot_be_made(tmp_path):
    with pytest.raises(LedgerError, match="cannot be made") as error:
        Key.at(tmp_path / "no" / "key", create=True)
    assert error.value.code is Code.LEDGER_KEY


def test_a_draft_left_by_a_kill_does_no_harm(tmp_path):
    (tmp_path / f"key.{os.getpid()}").write_bytes(b"half a k")
    key = Key.at(tmp_path / "key", create=True)
    assert Key.at(tmp_path / "key", create=False).public == key.public
