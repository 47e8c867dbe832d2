"""Authentication: which credentials are accepted, what their file holds, and that a stranger learns no names."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from tests.support.command import invoke_command

from tacit import durable_files
from tacit.errors import ParameterError
from tacit.policy.load import load
from tacit.serve import credentials
from tacit.serve.authentication import Authenticator, Role, ScramVerifier, User

POLICY = {
    "privacy": {"epsilon": 10},
    "tables": {"flats": {"unit": "row", "columns": {"rent": {"type": "int", "lower": 0, "upper": 9}}}},
    "analysts": {"ada": {"epsilon": 5}, "ben": {"epsilon": 5}},
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "flats.people"


@pytest.fixture
def authenticator(path):
    def opened() -> Authenticator:
        return Authenticator(path, load(POLICY))

    return opened


@pytest.mark.slow
def test_a_key_and_a_password_let_in_whom_they_were_made_for(path, authenticator):
    ada, ben = (credentials.add_credential(path, name, Role.ANALYST) for name in ("ada", "ben"))
    opened = authenticator()
    assert opened.by_key(ada.key) == opened.by_password("ada", ada.password) == User("ada", Role.ANALYST)
    assert opened.by_key(ben.key) == opened.by_password("ben", ben.password) == User("ben", Role.ANALYST)
    assert opened.by_password("ada", ben.password) is None
    assert opened.by_key(ada.key) == User("ada", Role.ANALYST)  # now it is remembered


@pytest.mark.slow
def test_other_keys_let_nobody_in(path, authenticator):
    ada, ben = (credentials.add_credential(path, name, Role.ANALYST).key for name in ("ada", "ben"))
    mixed = "_".join([*ada.split("_")[:2], ben.split("_")[2]])
    for wrong in (
        "",
        "tacit_",
        ada[:-1],
        ada + "0",
        ada.removeprefix("tacit_"),
        ada.upper(),
        mixed,
        "\ud800",
        "x" * 9999,
    ):
        assert authenticator().by_key(wrong) is None


@pytest.mark.slow
def test_an_analyst_must_be_in_the_policy_and_an_owner_need_not(path, authenticator):
    zoe = credentials.add_credential(path, "zoe", Role.ANALYST)
    owner, auditor = (
        credentials.add_credential(path, "olga", Role.OWNER),
        credentials.add_credential(path, "otto", Role.AUDITOR),
    )
    opened = authenticator()
    assert opened.by_key(zoe.key) is opened.by_password("zoe", zoe.password) is opened.person("zoe") is None
    assert opened.by_key(owner.key) == User("olga", Role.OWNER)
    assert opened.by_key(auditor.key) == User("otto", Role.AUDITOR)


@pytest.mark.slow
def test_a_change_of_the_file_is_noticed(path, authenticator):
    opened = authenticator()
    old = credentials.add_credential(path, "ada", Role.ANALYST)
    assert opened.by_key(old.key) is not None
    new = credentials.rotate_credential(path, "ada")
    assert opened.by_key(old.key) is None  # although it was remembered
    assert opened.by_key(new.key) is not None
    credentials.revoke_credential(path, "ada")
    assert opened.by_key(new.key) is opened.by_password("ada", new.password) is None


@pytest.mark.slow
def test_a_damaged_file_lets_nobody_in(path, authenticator):
    ada = credentials.add_credential(path, "ada", Role.ANALYST)
    opened = authenticator()
    assert opened.by_key(ada.key) is not None
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    assert opened.by_key(ada.key) is None
    with pytest.raises(ParameterError, match="damaged"):
        authenticator()
    path.write_bytes(whole)
    assert opened.by_key(ada.key) is not None


def test_the_file_is_for_its_owner_only(path, authenticator):
    credentials.add_credential(path, "ada", Role.ANALYST)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    with pytest.raises(ParameterError, match="can be read by others"):
        authenticator()


def test_the_file_holds_no_secret_that_opens_anything(path):
    ada = credentials.add_credential(path, "ada", Role.ANALYST)
    text = path.read_text()
    assert ada.password not in text and ada.key.split("_")[2] not in text
    record = json.loads(text)["people"]["ada"]
    assert record["scram"]["iterations"] >= 10_000
    assert len(bytes.fromhex(record["key"]["sha256"])) == 32
    # 24 bytes of key in hexadecimal, and 20 bytes of password: 192 and 160 bits
    assert re.fullmatch(r"tacit_[0-9a-f]{12}_[0-9a-f]{48}", ada.key)
    assert re.fullmatch(r"[a-z2-7]{32}", ada.password)


def test_the_verifier_is_that_of_the_standard():
    # RFC 7677, section 3: user "user", password "pencil", 4096 rounds
    import base64
    import hmac

    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    found = ScramVerifier.of("pencil", salt, 4096)
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    message = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={nonce}".encode()
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signature = hmac.digest(found.stored_key, message, "sha256")
    client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
    assert hashlib.sha256(client_key).digest() == found.stored_key
    server = base64.b64encode(hmac.digest(found.server_key, message, "sha256"))
    assert server == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(name=some.text(max_size=40), password=some.text(max_size=40))
def test_an_unknown_name_has_a_verifier_that_looks_like_any_other_and_stays(tmp_path_factory, name, password):
    path = tmp_path_factory.getbasetemp() / "unknown.people"
    if not path.exists():
        credentials.add_credential(path, "ada", Role.ANALYST)
    one, other = Authenticator(path, load(POLICY)), Authenticator(path, load(POLICY))
    made_up, real = one.verifier(name), one.verifier("ada")
    if name != "ada":
        assert made_up == other.verifier(name)  # after a restart too
        shape = [len(made_up.salt), made_up.iterations, len(made_up.stored_key), len(made_up.server_key)]
        assert shape == [len(real.salt), real.iterations, len(real.stored_key), len(real.server_key)]
        assert made_up.salt != real.salt
    assert one.by_password(name, password) is None


def test_a_wrong_password_or_key_costs_the_same_work_whether_known_or_not(path, authenticator, monkeypatch):
    credentials.add_credential(path, "ada", Role.ANALYST)
    opened = authenticator()
    work = []
    derive, digest = hashlib.pbkdf2_hmac, credentials.KeyHash.of
    monkeypatch.setattr(hashlib, "pbkdf2_hmac", lambda *a: work.append(("pbkdf2", a[3])) or derive(*a))
    monkeypatch.setattr(credentials.KeyHash, "of", lambda *a: work.append(("hash", a[2])) or digest(*a))
    known = credentials.read_credentials(path).records[0].key_id
    tried = []
    for attempt in (
        lambda: opened.by_password("ada", "wrong"),
        lambda: opened.by_password("nobody", "wrong"),
        lambda: opened.by_key(f"tacit_{known}_{'0' * 48}"),
        lambda: opened.by_key(f"tacit_{'0' * 12}_{'0' * 48}"),
        lambda: opened.by_key("no key at all"),
    ):
        work.clear()
        assert attempt() is None
        tried.append(tuple(work))
    assert tried[0] == tried[1] == (("pbkdf2", 10_000),)
    assert tried[2] == tried[3] == tried[4] == (("hash", "sha256"),)


@pytest.mark.slow
def test_a_key_issued_with_a_slow_hash_still_opens_the_door(path, authenticator):
    ada = credentials.add_credential(path, "ada", Role.ANALYST)
    plain = json.loads(path.read_text())
    salt, secret = os.urandom(16), ada.key.split("_")[2]
    scrypt = hashlib.scrypt(secret.encode(), salt=salt, n=2**14, r=8, p=1)
    plain["people"]["ada"]["key"] = {"id": ada.key.split("_")[1], "salt": salt.hex(), "scrypt": scrypt.hex()}
    path.write_text(json.dumps(plain))
    opened = authenticator()
    assert opened.by_key(ada.key).name == "ada"
    assert opened.by_key(ada.key[:-1] + ("0" if ada.key[-1] != "0" else "1")) is None
    credentials.add_credential(path, "ben", Role.ANALYST)  # writing the file keeps what it holds
    assert authenticator().by_key(ada.key).name == "ada"


@pytest.mark.slow
def test_two_who_change_the_file_at_once_take_turns(path):
    names = [f"person{n}" for n in range(6)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: credentials.add_credential(path, name, Role.AUDITOR), names))
    assert sorted(record.name for record in credentials.read_credentials(path).records) == sorted(names)
    assert not [file for file in os.listdir(path.parent) if file.startswith("flats.people.") and "lock" not in file]


@pytest.mark.parametrize("name", ["", " ada", "ada\n", "x" * 61])
def test_what_is_no_name_is_refused(path, name):
    with pytest.raises(ParameterError, match="not a name"):
        credentials.add_credential(path, name, Role.OWNER)


def test_a_revocation_is_on_disk_before_it_is_said(path, monkeypatch):
    credentials.add_credential(path, "ada", Role.ANALYST)
    synchronized: list[tuple[int, set[str]]] = []

    def fsync(handle: int) -> None:
        os.fsync(handle)
        synchronized.append(
            (os.fstat(handle).st_ino, {record.name for record in credentials.read_credentials(path).records})
        )

    patched = SimpleNamespace(**{**vars(os), "fsync": fsync})
    for module in (credentials, durable_files):
        monkeypatch.setattr(module, "os", patched)
    credentials.revoke_credential(path, "ada")
    # The content under its draft's name, then the folder, which has the new name of it.
    assert synchronized == [(path.stat().st_ino, {"ada"}), (path.parent.stat().st_ino, set())]


def test_a_change_that_cannot_be_written_leaves_the_file_and_no_draft(path, monkeypatch):
    credentials.add_credential(path, "ada", Role.ANALYST)
    before = path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    patched = SimpleNamespace(**{**vars(os), "fsync": full})
    for module in (credentials, durable_files):
        monkeypatch.setattr(module, "os", patched)
    with pytest.raises(ParameterError, match="cannot be written: No space left on device"):
        credentials.revoke_credential(path, "ada")
    assert path.read_bytes() == before
    assert {file.name for file in path.parent.iterdir()} == {path.name, f"{path.name}.lock"}


@pytest.mark.slow
def test_the_commands_add_list_rotate_and_revoke(tmp_path):
    (tmp_path / "flats.toml").write_text(
        '[privacy]\nepsilon = 10\n[tables.flats]\nunit = "row"\n'
        'columns.rent = { type = "int", lower = 0, upper = 9 }\n[analysts.ada]\nepsilon = 5\n'
    )
    place = ["-p", str(tmp_path / "flats.toml")]

    def run(*words: str) -> str:
        done = invoke_command("analyst", *words, *place)
        assert done.exit_code == 0, done.output
        return done.output

    assert "Nobody is let in" in run("list")
    made = json.loads(run("add", "ada", "--json"))
    opened = Authenticator(tmp_path / "flats.people", load(tmp_path / "flats.toml"))
    assert opened.by_key(made["key"]) == opened.by_password("ada", made["password"]) == User("ada", Role.ANALYST)
    assert "owner" in run("add", "olga", "--role", "owner")
    shown = run("list")
    assert "ada" in shown and "olga" in shown and made["key"] not in shown and made["password"] not in shown
    again = re.search(r"tacit_\w+", run("rotate", "ada"))
    assert again is not None and opened.by_key(again[0]) is not None and opened.by_key(made["key"]) is None
    run("revoke", "ada")
    assert opened.by_key(again[0]) is None
    for wrong in (
        ["add", "zoe"],
        ["add", "olga", "--role", "owner"],
        ["add", "x", "--role", "king"],
        ["revoke", "zoe"],
    ):
        with pytest.raises(ParameterError):
            run(*wrong)
