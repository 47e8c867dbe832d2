"""SCRAM-SHA-256 (RFC 5802, RFC 7677), the server's side: a password is checked without ever being seen.

With a certificate there is SCRAM-SHA-256-PLUS too, which binds the exchange to the TLS connection it runs in: nobody in
the middle can pass it on.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable

from tacit.serve.credentials import ScramVerifier
from tacit.serve.pgwire.sqlstate import protocol_error

SCRAM = "SCRAM-SHA-256"
SCRAM_PLUS = "SCRAM-SHA-256-PLUS"
_BINDING = "p=tls-server-end-point"


def channel_binding_hash(certificate: bytes) -> bytes | None:
    """The hash of a certificate (DER) that both ends bind to (RFC 5929); None where its signature names no hash."""
    from cryptography import x509

    algorithm = x509.load_der_x509_certificate(certificate).signature_hash_algorithm
    if algorithm is None:
        return None
    name = "sha256" if algorithm.name in {"md5", "sha1"} else algorithm.name
    return hashlib.new(name, certificate).digest()


class ScramExchange:
    """One login. The steps and the work are the same whether the name is known or the verifier made up."""

    def __init__(
        self, verifier: ScramVerifier, binding: bytes | None = None, nonce: Callable[[], str] | None = None
    ) -> None:
        self._verifier = verifier
        self._binding = binding
        self._nonce = nonce or (lambda: secrets.token_urlsafe(24))
        self._said = ""  # the messages so far, which both sides sign
        self._expected = ""
        self._header = b""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """What is offered, best first."""
        return (SCRAM_PLUS, SCRAM) if self._binding else (SCRAM,)

    def first(self, mechanism: str, message: bytes) -> bytes:
        """The answer to the client's first message: the nonce of both, the salt and the iterations."""
        text = _text(message)
        flag, authorized, bare = ([*text.split(",", 2), "", ""])[:3]
        if mechanism not in self.mechanisms:
            raise protocol_error("the client chose a mechanism that was not offered")
        allowed = {_BINDING} if mechanism == SCRAM_PLUS else ({"n"} if self._binding else {"n", "y"})
        if flag not in allowed:  # "y" says that no binding was offered: somebody took the offer away
            raise protocol_error("the client's channel binding is not the one that was offered")
        if authorized:
            raise protocol_error("an authorization identity is not supported")
        parts = bare.split(",")
        if len(parts) < 2 or not parts[0].startswith("n=") or not parts[1].startswith("r=") or len(parts[1]) < 10:
            raise protocol_error("the client's first message of SCRAM cannot be read")
        self._header = f"{flag},,".encode() + (self._binding or b"" if mechanism == SCRAM_PLUS else b"")
        self._expected = parts[1] + self._nonce()
        salt = base64.b64encode(self._verifier.salt).decode()
        answer = f"{self._expected},s={salt},i={self._verifier.iterations}"
        self._said = f"{bare},{answer}"
        return answer.encode()

    def final(self, message: bytes) -> bytes | None:
        """The answer to the client's proof, which proves that the server knows the verifier; None for a wrong one."""
        unproved, separator, proof = _text(message).rpartition(",p=")
        binding = f"c={base64.b64encode(self._header).decode()}"
        if not separator or unproved.split(",")[:2] != [binding, self._expected]:
            raise protocol_error("the client's last message of SCRAM cannot be read")
        try:
            given = base64.b64decode(proof, validate=True)
        except binascii.Error:
            raise protocol_error("the client's proof cannot be read") from None
        signed = f"{self._said},{unproved}".encode()
        signature = hmac.digest(self._verifier.stored_key, signed, "sha256")
        key = bytes(a ^ b for a, b in zip(given.ljust(32, b"\0")[:32], signature, strict=True))
        right = hmac.compare_digest(hashlib.sha256(key).digest(), self._verifier.stored_key) and len(given) == 32
        answer = b"v=" + base64.b64encode(hmac.digest(self._verifier.server_key, signed, "sha256"))
        return answer if right else None


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise protocol_error("a message of SCRAM is not UTF-8") from None
