"""Authentication of a served curator's analysts, by key or by password.

**Nobody learns who exists.** A name or a key that is not known is checked by the same steps as one that is, against
a verifier made up for it: the same salt every time, from a secret of the server's own. So neither the work done nor the
first message of SCRAM tells a stranger which names are real. (Keys that were issued before keys were hashed by SHA-256
take longer to check, which tells that a public half, of 48 random bits, is one of theirs.)
"""

from __future__ import annotations

import hmac
import logging
import os
import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import ParameterError
from tacit.policy.model import Policy
from tacit.serve.credentials import (
    ITERATIONS,
    PREFIX,
    Credential,
    Credentials,
    IdentityClaim,
    KeyHash,
    LinkedIdentity,
    Role,
    ScramVerifier,
    credentials_path,
    read_credentials,
)
from tacit.serve.limits import FailedAttempts

__all__ = ["Authenticator", "Role", "ScramVerifier", "User", "credentials_path"]

_log = logging.getLogger("tacit.serve")
_REMEMBERED = 10_000  # keys that were checked once
_LONGEST = 200  # characters of a key or a name worth looking at


@dataclass(frozen=True)
class User:
    """Someone who was let in."""

    name: str
    role: Role


class Authenticator:
    """Checks keys and passwords against the people of a file, which is read again whenever it changes.

    An analyst must be in the policy too; owners and auditors need not be. A file that cannot be read lets nobody in.
    `attempts` counts failures by account and address: whoever checks a key or a password does it inside its `trying`.
    Checks of passwords take some milliseconds: call them outside the event loop.
    """

    def __init__(self, path: Path, policy: Policy) -> None:
        self.path = path
        self.policy = policy
        self.attempts = FailedAttempts()
        self._lock = threading.Lock()
        self._stamp: tuple[int, ...] | None = None
        self._people = Credentials(b"", ())
        self._session = secrets.token_bytes(32)  # known to this process only
        self._secret = self._session  # until the file has one
        self._remembered: OrderedDict[bytes, str] = OrderedDict()
        with self._lock:
            self._load()

    def verifier(self, name: str) -> ScramVerifier:
        """What a password of this name is checked against; made up, and the same each time, for an unknown name."""
        record = self._admit(name)
        return self._made_up(name) if record is None else record.verifier

    def person(self, name: str) -> User | None:
        """Someone by name, after their password was checked elsewhere, as SCRAM does."""
        record = self._admit(name)
        return None if record is None else User(record.name, record.role)

    def by_password(self, name: str, password: str) -> User | None:
        """Whoever has this name and this password."""
        expected = self.verifier(name)
        found = ScramVerifier.of(password[:_LONGEST], expected.salt, expected.iterations)
        same = hmac.compare_digest(found.stored_key, expected.stored_key)
        return self.person(name) if same else None

    def by_identity(self, issuer: str, subject: str, email: str = "") -> User | None:
        """Whoever an identity is linked to: by its subject, or else by `email`, which its issuer has verified."""
        people = self._current()
        record = people.find_identity(LinkedIdentity(issuer, IdentityClaim.SUBJECT, subject))
        if record is None and email:
            record = people.find_identity(LinkedIdentity(issuer, IdentityClaim.EMAIL, email))
        return self._let_in(record)

    def identity(self, name: str) -> LinkedIdentity | None:
        """The identity that is linked to a name."""
        record = self._admit(name)
        return None if record is None else record.identity

    def recall(self, key: str) -> User | None:
        """Whoever has this key, where this process has checked it before. It takes no time to speak of."""
        people = self._current()
        with self._lock:
            name = self._remembered.get(self._digest(key))
        return None if name is None else self._let_in(people.find(name))

    def by_key(self, key: str) -> User | None:
        """Whoever has this key. Once it was checked, this process remembers its digest."""
        known = self.recall(key)
        if known is not None:
            return known
        people = self._current()
        public, secret = key_id(key), key[:_LONGEST].removeprefix(PREFIX).partition("_")[2]
        record = next((each for each in people.records if each.key_id == public), None)
        expected = record.key_hash if record else KeyHash("sha256", *self._made_up_hash(public))
        if not expected.matches(secret) or record is None or not key.startswith(PREFIX):
            return None
        with self._lock:
            if people is self._people:  # a key that was revoked meanwhile is not remembered
                self._remembered[self._digest(key)] = record.name
                while len(self._remembered) > _REMEMBERED:
                    self._remembered.popitem(last=False)
        return self._let_in(record)

    def _digest(self, key: str) -> bytes:
        """What is remembered of a key: nothing that opens anything, here or elsewhere."""
        return hmac.digest(self._session, key[:_LONGEST].encode("utf-8", "surrogatepass"), "sha256")

    def _admit(self, name: str) -> Credential | None:
        record = self._current().find(name)
        return record if self._let_in(record) is not None else None

    def _let_in(self, record: Credential | None) -> User | None:
        """A person whom the policy knows, where the role needs that."""
        if record is None or (record.role is Role.ANALYST and self.policy.analyst(record.name) is None):
            return None
        return User(record.name, record.role)

    def _made_up(self, name: str) -> ScramVerifier:
        """A verifier that no password fits: its keys are no hashes of anything known."""
        stretched = self._stretch(f"name {name[:_LONGEST]}")
        return ScramVerifier(stretched[:16], ITERATIONS, stretched[32:64], stretched[64:])

    def _made_up_hash(self, public: str) -> tuple[bytes, bytes]:
        """A salt and a digest that no key fits."""
        stretched = self._stretch(f"key {public}")
        return stretched[:16], stretched[32:64]

    def _stretch(self, text: str) -> bytes:
        """96 bytes that only this server can compute."""
        data = text.encode("utf-8", "surrogatepass")
        return b"".join(hmac.digest(self._secret, bytes([part]) + data, "sha256") for part in range(3))

    def _current(self) -> Credentials:
        """The people as the file has them now."""
        with self._lock:
            if _file_identity(self.path) != self._stamp:
                try:
                    self._load()
                except ParameterError as error:
                    _log.error("all logins are refused: %s", error.what)
                    self._people = Credentials(b"", ())
                    self._remembered.clear()
            return self._people

    def _load(self) -> None:
        self._stamp = _file_identity(self.path)
        self._people = read_credentials(self.path)
        self._secret = self._people.secret or self._session
        self._remembered.clear()


def key_id(key: str) -> str:
    """The public half of a key, by which failures are counted; any text where it is no key."""
    return key[:_LONGEST].removeprefix(PREFIX).partition("_")[0]


def _file_identity(path: Path) -> tuple[int, ...] | None:
    """What changes whenever the file does: it is always moved into its place, so its number changes too."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode
