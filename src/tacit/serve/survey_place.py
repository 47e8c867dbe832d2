"""The socket of a survey's page, and the address under which respondents reach it."""

from __future__ import annotations

import errno
import socket

from cryptography import x509

from tacit.errors import ParameterError
from tacit.serve.server import ServerConfig
from tacit.serve.tls import Certificate, is_loopback

_EVERYWHERE = {"0.0.0.0", "::"}  # noqa: S104 - not bound here, only compared
_LAST = 65535


def bind_socket(settings: ServerConfig) -> socket.socket:
    """Open the listening socket: connections are queued until the event loop accepts them."""
    host, port = settings.host, settings.http or 0
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    except OSError as error:
        raise _address_error(host) from error
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise _address_error(host) from error
        private = error.errno == errno.EACCES
        next_one = 8090 if private else port + 1 if port < _LAST else port - 1
        what = f"{host}:{port} cannot be listened on: {'it needs more privileges' if private else 'it is in use'}"
        raise ParameterError("port", what, fix=f"choose another: --port {next_one}") from error


def public_address(settings: ServerConfig, listener: socket.socket) -> str:
    """Return the URL. A page that listens on all interfaces has a host name or IP address of this machine."""
    host, port = listener.getsockname()[:2]
    if host in _EVERYWHERE:
        host = _choose_host(settings.certificate)
    elif settings.certificate is not None and not _is_numeric(settings.host):
        host = settings.host  # the certificate has the host name, not its IP address
    host = f"[{host}]" if ":" in host else host
    return f"{'https' if settings.certificate else 'http'}://{host}:{port}/"


def reachable_host(host: str) -> str:
    """Return the host under which others reach a page that listens on `host`: a self-signed certificate names it."""
    return _own_hosts()[0] if host in _EVERYWHERE else host


def _choose_host(certificate: Certificate | None) -> str:
    """Return a host name or IP address of this machine that its certificate names, where it names one."""
    own, names = _own_hosts(), _certificate_names(certificate) if certificate is not None else []
    fitting = [each for each in own if each in names]
    return [*fitting, *names, *own][0]


def _certificate_names(certificate: Certificate) -> list[str]:
    found = x509.load_pem_x509_certificate(certificate.certificate.read_bytes())
    try:
        alternatives = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    names = [*alternatives.get_values_for_type(x509.DNSName), *alternatives.get_values_for_type(x509.IPAddress)]
    return [str(name) for name in names if "*" not in str(name) and not is_loopback(str(name))]


def _own_hosts() -> list[str]:
    """Return this machine's IP address, and its host name, which its own network may resolve."""
    return [each for each in (_outward_address(), socket.gethostname()) if each]


def _outward_address() -> str:
    """Return the IP address of the interface to the default route. Nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # reserved for documentation
        except OSError:
            return ""
        found = str(probe.getsockname()[0])
    return "" if found in _EVERYWHERE else found


def _is_numeric(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()


def _address_error(host: str) -> ParameterError:
    return ParameterError("host", f"{host} is not an address of this machine", fix="--host 127.0.0.1")
