"""Which identity provider the console trusts, and as whom it speaks to it: from the environment, checked at the start.

>>> settings = OpenIdConfiguration(
...     "https://login.example.org/realms/clinic", "tacit", "a secret", "https://tacit.example.org"
... )
>>> settings.redirect_uri
'https://tacit.example.org/console/oidc/callback'
>>> "a secret" in repr(settings)
False
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tacit.errors import ParameterError
from tacit.serve.tls import is_loopback

ISSUER, CLIENT_ID, CLIENT_SECRET = "TACIT_OIDC_ISSUER", "TACIT_OIDC_CLIENT_ID", "TACIT_OIDC_CLIENT_SECRET"
"""The environment's names: a command line can be read by others."""
CALLBACK = "/console/oidc/callback"
_LONGEST = 500  # characters of an address
_EXAMPLE = "https://login.example.org/realms/clinic"


@dataclass(frozen=True)
class OpenIdConfiguration:
    """A provider by its issuer, and this server as its client. The secret is in no text that is made of this.

    `public_url` is the scheme, host and port by which browsers reach this server. It is said by the owner and never
    taken from a request: the Host header is the caller's choice.
    """

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    public_url: str

    def __post_init__(self) -> None:
        if not is_safe_address(self.issuer) or "?" in self.issuer:
            what = "is not an https address (http is for this machine only), without query and fragment"
            raise ParameterError(ISSUER, what, fix=f"{ISSUER}={_EXAMPLE} tacit serve")
        if not (self.client_id.isascii() and self.client_id.isprintable() and 0 < len(self.client_id) <= _LONGEST):
            what = "is missing or not printable ASCII"
            raise ParameterError(CLIENT_ID, what, fix=f"{CLIENT_ID}=the-client-id-at-the-provider tacit serve")
        if not (self.client_secret.isascii() and self.client_secret.isprintable() and self.client_secret):
            what = "is missing or not printable ASCII: the server is a confidential client"
            raise ParameterError(CLIENT_SECRET, what, fix=f"{CLIENT_SECRET}=the-secret-at-the-provider tacit serve")
        parts = urlsplit(self.public_url) if is_safe_address(self.public_url) else None
        if parts is None or parts.path not in {"", "/"} or parts.query:
            what = "is not scheme, host and port of the address that browsers use"
            raise ParameterError("public-url", what, fix="--public-url https://tacit.example.org")

    @classmethod
    def from_environment(cls, public_url: str | None) -> OpenIdConfiguration | None:
        """The configuration that the environment has; None where it has none of it."""
        issuer, client_id, secret = (os.environ.get(name, "") for name in (ISSUER, CLIENT_ID, CLIENT_SECRET))
        if not (issuer or client_id or secret):
            return None
        if not issuer:
            what = f"is missing, though {CLIENT_ID if client_id else CLIENT_SECRET} is set"
            raise ParameterError(ISSUER, what, fix=f"{ISSUER}={_EXAMPLE} tacit serve")
        if not public_url:
            what = "is missing: the provider sends browsers back to it"
            raise ParameterError("public-url", what, fix="--public-url https://tacit.example.org")
        return cls(issuer, client_id, secret, public_url)

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach this server over TLS."""
        return self.public_url.startswith("https://")

    @property
    def redirect_uri(self) -> str:
        """Where the provider sends a browser back to; it is registered there."""
        return self.public_url.rstrip("/") + CALLBACK

    @property
    def host(self) -> str:
        """The provider's host, by which people know it."""
        return urlsplit(self.issuer).netloc


def is_safe_address(address: str, *, loopback: bool = True) -> bool:
    """Whether this is https, or, where `loopback` allows it, http to this machine: without user, password and fragment.

    >>> [is_safe_address(each) for each in ("https://a.example/x", "http://127.0.0.1:9000", "http://a.example")]
    [True, True, False]
    """
    if not (address.isascii() and address.isprintable() and len(address) <= _LONGEST) or " " in address:
        return False
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if "@" in parts.netloc or "#" in address or "\\" in address or not host or port == 0:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and loopback and is_loopback(host))
