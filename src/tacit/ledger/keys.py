"""The ledger's own signature. A receipt that carries it proves what the ledger held, to whoever has the public key.

>>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
>>> key = Key(Ed25519PrivateKey.generate())
>>> is_signed("5eed", key.sign("5eed"), key.public)
True
>>> is_signed("5eee", key.sign("5eed"), key.public)
False
"""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tacit.errors import Code, LedgerError

_PREFIX = b"tacit ledger head "


class Key:
    """An Ed25519 key that signs heads."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = private.public_key().public_bytes_raw().hex()

    def sign(self, head: str) -> str:
        """The signature over a head, in hexadecimal."""
        return self._private.sign(_PREFIX + head.encode()).hex()

    @classmethod
    def at(cls, path: Path, *, create: bool) -> Key:
        """The key in a file, which only its owner may read. A new one is made where none is and one may be."""
        if create and not path.exists():
            _write(path)
        try:
            private = serialization.load_pem_private_key(path.read_bytes(), password=None)
        except FileNotFoundError as error:
            raise _error(f"{path} is missing, and the ledger was signed with it", "put it back") from error
        except OSError as error:
            raise _error(f"{path} cannot be read", "give this user the right to read it") from error
        except (ValueError, TypeError) as error:
            raise _error(f"{path} is not a key", "put the ledger's key back") from error
        if not isinstance(private, Ed25519PrivateKey):
            raise _error(f"{path} is a key of another kind", "put the ledger's key back")
        return cls(private)


def is_signed(head: str, signature: str, public: str) -> bool:
    """Whether a head carries the signature of this public key."""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(signature), _PREFIX + head.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def _write(path: Path) -> None:
    """Make a key, whole or not at all: of two who try at once, one wins and both use it."""
    text = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    except OSError as error:
        raise _error(f"{path} cannot be made", "give this user the right to write to its folder") from error


def _error(what: str, fix: str) -> LedgerError:
    return LedgerError(Code.LEDGER_KEY, what, fix=fix)
