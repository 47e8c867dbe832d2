"""The ledger's own signature. A receipt that carries it proves what the ledger held, to whoever has the public key.

>>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
>>> key = SigningKey(Ed25519PrivateKey.generate())
>>> is_valid_signature("5eed", key.sign("5eed"), key.public)
True
>>> is_valid_signature("5eee", key.sign("5eed"), key.public)
False
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tacit.errors import ErrorCode, LedgerError
from tacit.ledger.files import FULL_DISK, make, tighten

_PREFIX = b"tacit ledger head "
_MAC_PREFIX = b"tacit ledger mac "
_MARK = b"\n# signs a ledger of tacit\n"  # after the key, where readers of keys do not look


class SigningKey:
    """An Ed25519 key that signs heads.

    Its file remembers that it belongs to a ledger: `mark` adds a line to it, before anything is signed. **A key that is
    marked opens no ledger that does not name it**, such as an empty one in the place of one that was deleted together
    with its witness.
    """

    def __init__(self, private: Ed25519PrivateKey, path: Path | None = None) -> None:
        self._private = private
        self._path = path
        self.public = private.public_key().public_bytes_raw().hex()

    def sign(self, head: str) -> str:
        """The signature over a head, in hexadecimal."""
        return self._private.sign(_PREFIX + head.encode()).hex()

    def compute_mac(self, text: str) -> str:
        """A MAC of a text, in hexadecimal: nobody without this key can compute or check it."""
        key = hashlib.sha256(_MAC_PREFIX + self._private.private_bytes_raw()).digest()
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()

    @property
    def name(self) -> str:
        """How errors call it."""
        return "its key" if self._path is None else f"its key {self._path}"

    def is_marked(self) -> bool:
        """Whether it belongs to a ledger already. A key without a file remembers nothing."""
        return self._path is not None and _MARK in _read(self._path)

    def mark(self) -> None:
        """Remember, durably, that it belongs to a ledger. What is in the file stays: a torn line at its end is none."""
        if self._path is None or self.is_marked():
            return
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND)
            try:
                if os.write(handle, _MARK) != len(_MARK):
                    raise OSError(errno.ENOSPC, "a short write")
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            what = f"{self._path} cannot be written, and has to remember that it signs this ledger"
            raise _unwritable(error, what, "give this user the right to write the file") from error

    @classmethod
    def at(cls, path: Path, *, create: bool) -> SigningKey:
        """The key in a file, which only its owner may read. A new one is made where none is and one may be."""
        if create and not path.exists():
            _create_key_file(path)
        try:
            private = serialization.load_pem_private_key(_read(path), password=None)
        except (ValueError, TypeError) as error:
            raise _error(f"{path} is not a key", "put the ledger's key back") from error
        if not isinstance(private, Ed25519PrivateKey):
            raise _error(f"{path} is a key of another kind", "put the ledger's key back")
        tighten(path)
        return cls(private, path)


def is_valid_signature(head: str, signature: str, public: str) -> bool:
    """Whether a head carries the signature of this public key."""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(signature), _PREFIX + head.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise _error(f"{path} is missing, and the ledger was signed with it", "put it back") from error
    except OSError as error:
        raise _error(f"{path} cannot be read", "give this user the right to read it") from error


def _create_key_file(path: Path) -> None:
    """Make a key, whole or not at all: of two who try at once, one wins and both use it."""
    text = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        make(path, text)
    except OSError as error:
        raise _unwritable(error, f"{path} cannot be made", "give this user the right to write to its folder") from error


def _unwritable(error: OSError, what: str, fix: str) -> LedgerError:
    """The error of a key that cannot be written; of a full disk its own one."""
    if error.errno in FULL_DISK:
        return LedgerError(ErrorCode.LEDGER_FULL, f"{what}: the disk is full", fix="free some space and ask again")
    return _error(what, fix)


def _error(what: str, fix: str) -> LedgerError:
    return LedgerError(ErrorCode.LEDGER_KEY, what, fix=fix)
