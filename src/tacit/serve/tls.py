"""TLS for both listeners: the owner's certificate, or one that the server makes for itself.

A self-made certificate is vouched for by nobody. Its file is handed to analysts, who trust that file:
`tacit.connect(url, key=..., cafile="clinic.tls.pem")`, or sslrootcert=clinic.tls.pem sslmode=verify-full.
"""

from __future__ import annotations

import fcntl
import hashlib
import ipaddress
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tacit.durable_files import replace_file
from tacit.errors import ParameterError

_DAYS = 397  # as long as browsers accept
_RENEW = timedelta(days=30)
_SUBJECT = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Tacit")])


@dataclass(frozen=True)
class Certificate:
    """A certificate with what stands above it, and its key, as files in PEM."""

    certificate: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        """What a listener needs. TLS 1.2 or newer."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            fix = "name both files, in PEM, readable by this user: --tls-cert FILE --tls-key FILE"
            what = f"{self.certificate.name} and {self.key.name} are not a certificate and its key"
            raise ParameterError("tls", what, fix=fix) from error
        return context

    @property
    def der(self) -> bytes:
        """The certificate itself, to which SCRAM may bind."""
        found = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        return found.public_bytes(serialization.Encoding.DER)

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the certificate, by which people compare it."""
        return hashlib.sha256(self.der).hexdigest()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def load_self_signed(policy: Path, host: str) -> Certificate:
    """The server's own certificate, beside the policy; a new one where there is none, or not for long or this host.

    Of servers that start at once, one makes it, under a lock, and all have the same one.
    """
    made = Certificate(policy.with_suffix(".tls.pem"), policy.with_suffix(".tls.key"))
    names = _server_names(host)
    if _is_usable(made, names):
        return made
    try:
        with _lock(policy.with_suffix(".tls.lock")):
            if not _is_usable(made, names):
                _write_self_signed(made, names)
    except OSError as error:
        fix = "give this user the right to write beside the policy, or name a certificate: --tls-cert --tls-key"
        raise ParameterError("tls-self", "the certificate cannot be written", fix=fix) from error
    return made


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _server_names(host: str) -> list[str]:
    """All names under which this server may be reached."""
    own = [] if host in {"0.0.0.0", "::"} else [host]  # noqa: S104 - not bound here, only compared
    return list(dict.fromkeys(["localhost", "127.0.0.1", "::1", socket.gethostname(), *own]))


def _is_usable(made: Certificate, names: list[str]) -> bool:
    """Whether there is a certificate for these names, for long enough, with its key.

    One that was made here and has another key is made anew; files that someone else put there are left alone.
    """
    try:
        found = x509.load_pem_x509_certificate(made.certificate.read_bytes())
        alternatives = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return False
    if (
        not made.key.exists()
        or found.not_valid_after_utc <= datetime.now(UTC) + _RENEW
        or not set(map(_to_general_name, names)) <= set(alternatives)
    ):
        return False
    if _is_key_of(made.key, found):
        return True
    if found.issuer != _SUBJECT:
        what = f"{made.key} is not the key of {made.certificate.name}"
        raise ParameterError("tls-self", what, fix="put its key there, or remove both files: the next start makes them")
    return False


def _is_key_of(key: Path, certificate: x509.Certificate) -> bool:
    """Whether it is the key of a certificate. One that cannot be read is left to `Certificate.context` to refuse."""
    try:
        found = serialization.load_pem_private_key(key.read_bytes(), None)
    except (OSError, TypeError):  # a TypeError is for one that needs a password
        return True
    except (ValueError, UnsupportedAlgorithm):
        return False
    return found.public_key() == certificate.public_key()


def _write_self_signed(made: Certificate, names: list[str]) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(_SUBJECT)
        .issuer_name(_SUBJECT)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))  # clocks differ
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_to_general_name(name) for name in names]), critical=False)
        .add_extension(identifier, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    replace_file(made.key, plain, 0o600)
    replace_file(made.certificate, certificate.public_bytes(serialization.Encoding.PEM), 0o644)


def _to_general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
