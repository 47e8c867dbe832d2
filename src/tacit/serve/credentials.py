"""Who may come in: a file beside the policy that holds no key and no password, only what checks them.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> path = Path(folder.name) / "clinic.people"
>>> secrets = add_credential(path, "ada", Role.ANALYST)
>>> secrets.key.startswith("tacit_")
True
>>> [record.name for record in read_credentials(path).records]
['ada']
>>> folder.cleanup()
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import json
import os
import secrets as randomness
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from tacit.durable_files import replace_file
from tacit.errors import ParameterError

ITERATIONS = 10_000  # of PBKDF2; passwords are made here, with 160 bits, so the count is not what protects them
PREFIX = "tacit_"
_VERSION = 1
_LONGEST_IDENTITY = 500  # characters of an issuer, a subject or an address
_SALT, _ID, _SECRET, _PASSWORD, _SERIAL = 16, 6, 24, 20, 16  # bytes
_SCRYPT = {"n": 2**14, "r": 8, "p": 1}  # of keys that were issued before SHA-256 took its place
_FIX = "put it back as it was, or move it away and add everyone again: tacit analyst add NAME"


class Role(StrEnum):
    """What someone may do: an analyst asks, an auditor reads the ledger, an owner both reads and manages."""

    OWNER = "owner"
    ANALYST = "analyst"
    AUDITOR = "auditor"


@dataclass(frozen=True)
class ScramVerifier:
    """What a server keeps of a password for SCRAM-SHA-256: enough to check it, too little to use it elsewhere."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of(cls, password: str, salt: bytes, iterations: int = ITERATIONS) -> ScramVerifier:
        """The verifier of a password."""
        salted = hashlib.pbkdf2_hmac("sha256", password.encode("utf-8", "surrogatepass"), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        return cls(salt, iterations, hashlib.sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256"))


@dataclass(frozen=True)
class KeyHash:
    """What is kept of the secret half of a key: enough to check it, too little to use it.

    **A fast hash is as good as a slow one here.** The secret is 192 random bits that are made in this module, so nobody
    who has the file tries them all, however fast one try is. A slow hash would protect nothing, and would let anyone
    who sends wrong keys take the processor from those who were let in.
    """

    function: str
    salt: bytes
    digest: bytes

    @classmethod
    def of(cls, secret: str, salt: bytes, function: str = "sha256") -> KeyHash:
        """The hash of a secret."""
        data = secret.encode("utf-8", "surrogatepass")
        digest = (
            hashlib.scrypt(data, salt=salt, **_SCRYPT) if function == "scrypt" else hmac.digest(salt, data, function)
        )
        return cls(function, salt, digest)

    def matches(self, secret: str) -> bool:
        """Whether it is the hash of this secret."""
        return hmac.compare_digest(KeyHash.of(secret, self.salt, self.function).digest, self.digest)


class IdentityClaim(StrEnum):
    """By which claim of an ID token an identity is known: the subject, or an email address that is verified."""

    SUBJECT = "sub"
    EMAIL = "email"


@dataclass(frozen=True)
class LinkedIdentity:
    """An account at an identity provider: the issuer, a claim, and its value, all compared exactly.

    A subject is never given to someone else by its issuer. An email address may be, so it is good for analysts only.
    `serial` is of the link and not of the account: each link draws another one, so that a session of a former link is
    told from one of this link. It is empty in links that were written before there were serials.
    """

    issuer: str
    claim: IdentityClaim
    value: str
    serial: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.claim} {self.value} of {self.issuer}"


@dataclass(frozen=True)
class Credential:
    """One person of the file: the verifier of the password, the public half and the hash of the key, and the link."""

    name: str
    role: Role
    verifier: ScramVerifier
    key_id: str
    key_hash: KeyHash
    since: str
    identity: LinkedIdentity | None = None


@dataclass(frozen=True)
class Credentials:
    """All of the file. `secret` makes up verifiers for names that are not in it."""

    secret: bytes
    records: tuple[Credential, ...]

    def find(self, name: str) -> Credential | None:
        """The record of a name."""
        return next((record for record in self.records if record.name == name), None)

    def find_identity(self, identity: LinkedIdentity) -> Credential | None:
        """The record that an identity is linked to. An address opens the record of an analyst only."""
        found = next((record for record in self.records if record.identity == identity), None)
        if found is not None and identity.claim is IdentityClaim.EMAIL and found.role is not Role.ANALYST:
            return None
        return found


@dataclass(frozen=True)
class IssuedSecrets:
    """A key and a password, which exist nowhere else: shown once."""

    key: str
    password: str


def credentials_path(policy: Path) -> Path:
    """Where the people of a policy stand: clinic.people beside clinic.toml."""
    return policy.with_suffix(".people")


def read_credentials(path: Path) -> Credentials:
    """The people of a file; nobody where there is none."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise ParameterError("people", f"{path} can be read by others", fix=f"chmod 600 {path}")
            return _parse_record(json.loads(file.read()))
    except FileNotFoundError:
        return Credentials(b"", ())
    except OSError as error:
        raise ParameterError("people", f"{path} cannot be read", fix="give this user the right to read it") from error
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError("people", f"{path} is damaged", fix=_FIX) from error


def add_credential(path: Path, name: str, role: Role) -> IssuedSecrets:
    """Let someone new in."""
    if not name or len(name) > 60 or not name.isprintable() or name != name.strip():
        raise ParameterError("name", "it is not a name", fix="use at most 60 printable characters")
    with _edit_file(path) as change:
        if change.people.find(name) is not None:
            raise ParameterError("name", f"{name} is there already", fix=f"for a new key: tacit analyst rotate {name}")
        record, made = _issue(name, role)
        change.people = replace(change.people, records=(*change.people.records, record))
    return made


def rotate_credential(path: Path, name: str) -> IssuedSecrets:
    """A new key and a new password for someone; the old ones open nothing from now on."""
    with _edit_file(path) as change:
        former = _require(change.people, name)
        record, made = _issue(name, former.role)
        change.people = _replace_record(change.people, replace(record, identity=former.identity))
    return made


def link_identity(path: Path, name: str, identity: LinkedIdentity) -> None:
    """Let an identity in as someone, in place of the one that was linked before.

    Sessions that a former link opened are over, even where it was to the same identity. An identity is linked to one
    name at most. Owners and auditors are linked by subject: an address may change hands.
    """
    _check_identity(identity)
    with _edit_file(path) as change:
        record = _require(change.people, name)
        if identity.claim is IdentityClaim.EMAIL and record.role is not Role.ANALYST:
            what = f"{name} is {record.role}, and an email address may pass to someone else"
            raise ParameterError("email", what, fix=f"tacit analyst link {shlex.quote(name)} --subject SUBJECT")
        taken = next((each for each in change.people.records if each.identity == identity and each.name != name), None)
        if taken is not None:
            what = f"this identity is linked to {taken.name}"
            raise ParameterError("identity", what, fix=f"tacit analyst unlink {shlex.quote(taken.name)}")
        linked = replace(identity, serial=randomness.token_hex(_SERIAL))
        change.people = _replace_record(change.people, replace(record, identity=linked))


def unlink_identity(path: Path, name: str) -> None:
    """Let no identity in as someone any more. Their key and their password stay."""
    with _edit_file(path) as change:
        change.people = _replace_record(change.people, replace(_require(change.people, name), identity=None))


def revoke_credential(path: Path, name: str) -> None:
    """Let someone in no longer. What they spent stays in the ledger."""
    with _edit_file(path) as change:
        _require(change.people, name)
        change.people = replace(change.people, records=tuple(r for r in change.people.records if r.name != name))


def _check_identity(identity: LinkedIdentity) -> None:
    for name, value in (("issuer", identity.issuer), ("identity", identity.value)):
        if not value or len(value) > _LONGEST_IDENTITY or not value.isprintable() or value != value.strip():
            what = "it is empty, too long or not printable"
            raise ParameterError(name, what, fix="copy it from the page that refused the sign-in")
    if not identity.issuer.startswith(("https://", "http://")):
        fix = "name the issuer as the server knows it, such as --issuer https://login.example.org/realms/clinic"
        raise ParameterError("issuer", f"{identity.issuer} is not the address of an issuer", fix=fix)


def _replace_record(people: Credentials, record: Credential) -> Credentials:
    return replace(people, records=tuple(record if old.name == record.name else old for old in people.records))


def _require(people: Credentials, name: str) -> Credential:
    found = people.find(name)
    if found is None:
        names = ", ".join(record.name for record in people.records) or "nobody"
        raise ParameterError("name", f"{name} is not among the people", fix=f"there is {names}")
    return found


def _issue(name: str, role: Role) -> tuple[Credential, IssuedSecrets]:
    """A record and what opens it. Both are of letters and digits, so that they survive any shell and any URL."""
    public, secret = randomness.token_hex(_ID), randomness.token_hex(_SECRET)
    password = base64.b32encode(randomness.token_bytes(_PASSWORD)).decode().lower()
    verifier = ScramVerifier.of(password, randomness.token_bytes(_SALT))
    key_hash = KeyHash.of(secret, randomness.token_bytes(_SALT))
    since = datetime.now(UTC).isoformat(timespec="seconds")
    record = Credential(name, role, verifier, public, key_hash, since)
    return record, IssuedSecrets(f"{PREFIX}{public}_{secret}", password)


@dataclass
class _Edit:
    people: Credentials


@contextmanager
def _edit_file(path: Path) -> Iterator[_Edit]:
    """Read, change and write, durably.

    Two who change at once take turns; a reader sees the old file or the new one, whole.
    """
    try:
        lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        fix = "give this user the right to write to its folder"
        raise ParameterError("people", f"{path} cannot be written", fix=fix) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        change = _Edit(read_credentials(path))
        yield change
        people = replace(change.people, secret=change.people.secret or randomness.token_bytes(32))
        try:
            replace_file(path, json.dumps(_plain(people), indent=2, ensure_ascii=False).encode(), 0o600)
        except OSError as error:
            what = f"{path} cannot be written: {error.strerror or 'it failed'}"
            fix = "give this user the right to write it and its folder, and the disk some free space"
            raise ParameterError("people", what, fix=fix) from error
    finally:
        os.close(lock)


def _plain(people: Credentials) -> dict[str, Any]:
    return {
        "version": _VERSION,
        "secret": people.secret.hex(),
        "people": {
            record.name: {
                "role": str(record.role),
                "since": record.since,
                "scram": {
                    "salt": record.verifier.salt.hex(),
                    "iterations": record.verifier.iterations,
                    "stored_key": record.verifier.stored_key.hex(),
                    "server_key": record.verifier.server_key.hex(),
                },
                "key": {
                    "id": record.key_id,
                    "salt": record.key_hash.salt.hex(),
                    record.key_hash.function: record.key_hash.digest.hex(),
                },
                **({} if record.identity is None else {"identity": _identity_to_dict(record.identity)}),
            }
            for record in people.records
        },
    }


def _identity_to_dict(identity: LinkedIdentity) -> dict[str, str]:
    plain = {"issuer": identity.issuer, "claim": str(identity.claim), "value": identity.value}
    return {**plain, "serial": identity.serial} if identity.serial else plain


def _parse_record(plain: Any) -> Credentials:
    if plain["version"] != _VERSION:
        raise ValueError("another version")
    return Credentials(
        bytes.fromhex(plain["secret"]), tuple(_record(name, each) for name, each in plain["people"].items())
    )


def _record(name: str, plain: Any) -> Credential:
    scram, key = plain["scram"], plain["key"]
    salt, stored, server = (bytes.fromhex(scram[part]) for part in ("salt", "stored_key", "server_key"))
    verifier = ScramVerifier(salt, int(scram["iterations"]), stored, server)
    function = "sha256" if "sha256" in key else "scrypt"
    key_hash = KeyHash(function, bytes.fromhex(key["salt"]), bytes.fromhex(key[function]))
    linked = plain.get("identity")
    identity = None if linked is None else _identity_from_dict(linked)
    return Credential(name, Role(plain["role"]), verifier, key["id"], key_hash, plain["since"], identity)


def _identity_from_dict(plain: Any) -> LinkedIdentity:
    issuer, value, serial = str(plain["issuer"]), str(plain["value"]), str(plain.get("serial", ""))
    return LinkedIdentity(issuer, IdentityClaim(plain["claim"]), value, serial)
