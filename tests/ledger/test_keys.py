"""The ledger's key: made once, kept private, and what it signs."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.ledger.conftest import by_hand, limits
from tests.support.forks import in_child, outcome

from tacit.errors import ErrorCode, LedgerError
from tacit.ledger import signing
from tacit.ledger.ledger import Ledger
from tacit.ledger.open_store import open_store
from tacit.ledger.recovery import accept_loss
from tacit.ledger.signing import SigningKey, is_valid_signature
from tacit.ledger.sqlite import SqliteStore
from tacit.ledger.witness import Witness

HEAD = "5eed" * 16
LIMITS = limits("3", ada="3")


def test_a_key_is_made_once_and_read_again(tmp_path):
    key = SigningKey.at(tmp_path / "key", create=True)
    assert SigningKey.at(tmp_path / "key", create=True).public == key.public
    assert SigningKey.at(tmp_path / "key", create=False).public == key.public
    assert [file.name for file in tmp_path.iterdir()] == ["key"]  # no draft is left behind


def test_only_its_owner_may_read_a_key(tmp_path):
    SigningKey.at(tmp_path / "key", create=True)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


@pytest.mark.slow
def test_of_many_who_make_a_key_at_once_all_use_one(tmp_path):
    start, go = os.pipe()
    told, tell = os.pipe()

    def work() -> int:
        os.read(start, 1)
        os.write(tell, SigningKey.at(tmp_path / "key", create=True).public.encode() + b"\n")
        return 0

    children = [in_child(work) for _ in range(8)]
    os.write(go, b"12345678")
    assert [outcome(child) for child in children] == [0] * 8
    os.close(tell)
    with os.fdopen(told) as seen:
        assert set(seen.read().split()) == {SigningKey.at(tmp_path / "key", create=False).public}
    os.close(start)
    os.close(go)


def test_a_signature_is_of_one_head_by_one_key(tmp_path):
    key, other = (SigningKey.at(tmp_path / name, create=True) for name in ("one", "two"))
    signature = key.sign(HEAD)
    assert is_valid_signature(HEAD, signature, key.public)
    assert not is_valid_signature(HEAD[:-1] + "0", signature, key.public)
    assert not is_valid_signature(HEAD, signature, other.public)
    assert not is_valid_signature(HEAD, other.sign(HEAD), key.public)
    assert not is_valid_signature(HEAD, signature[:-1] + ("0" if signature[-1] != "0" else "1"), key.public)


@pytest.mark.parametrize(("signature", "public"), [("", ""), ("no", "no"), ("00", "00" * 32), ("é" * 64, "é" * 32)])
def test_what_is_no_signature_is_none(signature, public):
    assert not is_valid_signature(HEAD, signature, public)


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
        SigningKey.at(tmp_path / "key", create=False)
    assert error.value.code is ErrorCode.LEDGER_KEY
    assert error.value.fix


def test_a_key_that_cannot_be_made(tmp_path):
    with pytest.raises(LedgerError, match="cannot be made") as error:
        SigningKey.at(tmp_path / "no" / "key", create=True)
    assert error.value.code is ErrorCode.LEDGER_KEY


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_key_that_finds_no_space_is_made_once_there_is_some(tmp_path, monkeypatch, number):
    def full(path, content):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(signing, "make", full)
        with pytest.raises(LedgerError, match="the disk is full") as error:
            SigningKey.at(tmp_path / "key", create=True)
    assert error.value.code is ErrorCode.LEDGER_FULL and error.value.fix.startswith("free some space")
    SigningKey.at(tmp_path / "key", create=True)


def test_a_draft_left_by_a_kill_does_no_harm(tmp_path):
    (tmp_path / f"key.{os.getpid()}").write_bytes(b"half a k")
    key = SigningKey.at(tmp_path / "key", create=True)
    assert SigningKey.at(tmp_path / "key", create=False).public == key.public


# A key and its ledger


def opens(place, key_path, witness=None) -> None:
    Ledger(place, LIMITS, key=SigningKey.at(key_path, create=True), witness=witness).close()


def refusal(place, key_path, witness=None) -> LedgerError:
    with pytest.raises(LedgerError) as error:
        opens(place, key_path, witness)
    assert error.value.fix
    return error.value


def empty(place) -> Path | str:
    """The same place, as if the ledger had never been there."""
    if isinstance(place, Path):
        for beside in ("", "-wal", "-shm"):
            Path(f"{place}{beside}").unlink(missing_ok=True)
        return place
    by_hand(place, f"DROP SCHEMA tacit_{place.partition('#')[2]} CASCADE")
    return place


def test_a_key_that_signs_a_ledger_opens_no_empty_one(place, tmp_path, witness):
    opens(place, tmp_path / "key", witness)
    opens(place, tmp_path / "key", witness)  # its own, again
    empty(place)
    witness.path.unlink()
    for _ in range(2):  # it does not heal by itself
        assert refusal(place, tmp_path / "key", witness).code is ErrorCode.LEDGER_MISSING
        assert not witness.path.exists()
    opens(place, tmp_path / "another.key", witness)  # the owner's word


def test_a_key_that_signs_a_ledger_opens_no_new_one_elsewhere(tmp_path):
    opens(tmp_path / "ledger", tmp_path / "key")
    assert refusal(tmp_path / "other", tmp_path / "key").code is ErrorCode.LEDGER_MISSING
    Ledger(tmp_path / "unsigned", LIMITS).close()
    assert refusal(tmp_path / "unsigned", tmp_path / "key").code is ErrorCode.LEDGER_KEY


def test_a_ledger_of_no_entries_is_an_empty_one(tmp_path):
    opens(tmp_path / "ledger", tmp_path / "key")
    store = open_store(tmp_path / "bare")
    with store.write() as session:
        store.create(session)
    store.close()
    (tmp_path / "bare").replace(empty(tmp_path / "ledger"))
    assert refusal(tmp_path / "ledger", tmp_path / "key").code is ErrorCode.LEDGER_MISSING


def test_a_key_from_before_is_marked_when_its_ledger_is_opened(tmp_path):
    opens(tmp_path / "ledger", tmp_path / "key")
    whole = (tmp_path / "key").read_bytes()
    (tmp_path / "key").write_bytes(whole.partition(b"\n#")[0] + b"\n")  # as an earlier version left it
    opens(tmp_path / "ledger", tmp_path / "key")
    assert SigningKey.at(tmp_path / "key", create=False).is_marked()
    assert serialization.load_pem_private_key(whole, password=None)  # an earlier version reads a marked one


@pytest.mark.slow
def test_accepting_the_loss_of_ledger_and_witness_charges_every_cap(place, tmp_path, witness):
    opens(place, tmp_path / "key", witness)
    empty(place)
    for left in (None, witness.path.read_bytes()[:16]):  # none, or one that has seen nothing
        witness.path.unlink(missing_ok=True)
        if left is not None:
            witness.path.write_bytes(left)
        accept_loss(place, LIMITS, key=SigningKey.at(tmp_path / "key", create=False), witness=witness, because="a fire")
        with Ledger(place, LIMITS, key=SigningKey.at(tmp_path / "key", create=False), witness=witness) as ledger:
            assert ledger.overall().remaining == ledger.standing("ada").remaining == 0
        empty(place)


@pytest.mark.parametrize("torn", [b"\n", b"\n# sig", b"\n# signs a ledger of tacit"])
def test_a_mark_that_a_power_cut_tore_is_written_again(tmp_path, torn):
    key = SigningKey.at(tmp_path / "key", create=True)
    before = (tmp_path / "key").read_bytes()
    (tmp_path / "key").write_bytes(before + torn)
    assert not key.is_marked()
    key.mark()
    key.mark()
    assert key.is_marked()
    assert (tmp_path / "key").read_bytes().startswith(before)
    assert SigningKey.at(tmp_path / "key", create=False).public == key.public


def test_a_ledger_that_was_never_finished_is_begun_again(tmp_path, witness, monkeypatch):
    # Killed at each step of the first opening: nothing was signed, so the key may begin the ledger once more.
    for name in ("is_whole", "create"):
        with monkeypatch.context() as patch:
            patch.setattr(SqliteStore, name, lambda *given: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                opens(tmp_path / "ledger", tmp_path / "key", witness)
        assert not SigningKey.at(tmp_path / "key", create=False).is_marked()
    with monkeypatch.context() as patch:
        patch.setattr(SigningKey, "mark", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            opens(tmp_path / "ledger", tmp_path / "key", witness)
    opens(tmp_path / "ledger", tmp_path / "key", witness)
    assert SigningKey.at(tmp_path / "key", create=False).is_marked()


@pytest.mark.slow
def test_of_many_who_open_a_new_ledger_at_once_all_do(tmp_path):
    def work() -> int:
        opens(tmp_path / "ledger", tmp_path / "key", Witness(tmp_path / "witness"))
        return 0

    assert [outcome(child) for child in [in_child(work) for _ in range(6)]] == [0] * 6
    assert (tmp_path / "key").read_bytes().count(b"# signs") >= 1


def test_a_key_that_cannot_remember_signs_nothing(tmp_path, monkeypatch):
    opens(tmp_path / "ledger", tmp_path / "key")
    (tmp_path / "key").write_bytes((tmp_path / "key").read_bytes().partition(b"\n#")[0] + b"\n")

    def full(handle, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(signing.os, "write", full)
        assert refusal(tmp_path / "ledger", tmp_path / "key").code is ErrorCode.LEDGER_FULL
    opens(tmp_path / "ledger", tmp_path / "key")
