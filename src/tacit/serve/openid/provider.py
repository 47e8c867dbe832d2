"""An identity provider as this server uses it: its discovery document, its keys, and codes that it redeems.

All of it may wait for the network: call it outside the event loop.
"""

from __future__ import annotations

import base64
import json
import logging
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote_plus, urlencode

from tacit import __version__
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.serve.openid.configuration import ISSUER, OpenIdConfiguration, is_safe_address
from tacit.serve.openid.id_token import ALGORITHMS, BadToken, TokenIdentity, UnknownKey, verify_id_token
from tacit.serve.openid.sign_in_flow import SignInFlow
from tacit.serve.outgoing_http import OutgoingError, OutgoingResponse, send_request

TIMEOUT = 10.0  # seconds for all that one sign-in needs of the provider
MAX_BYTES = 262_144  # of a document of the provider
MAX_AGE = 3600.0  # seconds for which the discovery document and the keys are taken as read
RETRY_SECONDS = 5.0  # after a failure, for which nothing is read again
KEY_SECONDS = 30.0  # between two reads of the keys, however many tokens name a key that is not among them
_MOST_KEYS = 100
_LONGEST_CODE = 8192  # characters

T = TypeVar("T")

_log = logging.getLogger("tacit.serve")


class ProviderFault(Exception):
    """The provider did not do its part. `step` is what was asked of it and how that failed, in words of our own."""

    def __init__(self, step: str) -> None:
        super().__init__(step)
        self.step = step


class WrongDocument(ProviderFault):
    """The provider answered, and with a discovery document that cannot be used: the configuration is wrong."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"discovery: {what}")
        self.what = what
        self.fix = fix


@dataclass(frozen=True)
class ProviderMetadata:
    """What is used of a discovery document."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str
    posts_secret: bool  # in the body of a request, where the provider does not take it in a header
    names_itself: bool  # in every authorization response, against mix-up


class OpenIdProvider:
    """One provider. Documents are read once for all who wait for them, and kept for `MAX_AGE` seconds.

    **Rule.** Whatever the provider does, one call of a method ends within `TIMEOUT` seconds; a document is read at most
    once every `RETRY_SECONDS` while that fails, and keys for the sake of an unknown one at most every `KEY_SECONDS`.
    What is older than `MAX_AGE` is not used: without a provider nobody signs in, with keys it withdrew nobody either.
    """

    def __init__(self, configuration: OpenIdConfiguration) -> None:
        self.configuration = configuration
        self._metadata = _Document(self._read_metadata)
        self._keys = _Document(self._read_keys)

    def read_at_start(self) -> None:
        """Read the discovery document; raise ParameterError where it shows that the configuration is wrong.

        A provider that cannot be reached is a warning: it is asked again when somebody signs in.
        """
        try:
            self._metadata.get(time.monotonic() + TIMEOUT)
        except WrongDocument as error:
            raise ParameterError(ISSUER, error.what, fix=error.fix) from None
        except ProviderFault as error:
            _log.warning("the identity provider is not reached yet, and is asked again at a sign-in: %s", error.step)

    def build_authorization_url(self, flow: SignInFlow, *, again: bool = False) -> str:
        """Where a browser goes to sign in; with `again` the provider asks who it is, even if it knows."""
        metadata = _tell(lambda: self._metadata.get(time.monotonic() + TIMEOUT))
        parameters = {
            "response_type": "code",
            "client_id": self.configuration.client_id,
            "redirect_uri": self.configuration.redirect_uri,
            "scope": "openid email",
            "state": flow.state,
            "nonce": flow.nonce,
            "code_challenge": flow.challenge,
            "code_challenge_method": "S256",
            **({"prompt": "login"} if again else {}),
        }
        return _add_query(metadata.authorization_endpoint, parameters)

    def redeem(self, code: str, flow: SignInFlow, issuer: str | None) -> TokenIdentity:
        """Return who signed in, for a code that came back with `issuer` as its sender, or raise Refused."""
        deadline = time.monotonic() + TIMEOUT
        try:
            return _tell(lambda: self._redeem(code, flow, issuer, deadline))
        except BadToken as error:
            _log.warning("a sign-in was refused: the provider's ID token is not valid by %s", error.reason)
            fix = "sign in again; if it stays so, tell the data owner"
            raise Refused(
                ErrorCode.AUTHENTICATION, "the provider's word on who you are is not valid", fix=fix
            ) from None

    def find_sign_out_address(self) -> str:
        """Where the session at the provider is ended, as far as the provider was read and has said so; else nothing."""
        metadata = self._metadata.peek()
        if metadata is None or not metadata.end_session_endpoint:
            return ""
        return _add_query(metadata.end_session_endpoint, {"client_id": self.configuration.client_id})

    def _redeem(self, code: str, flow: SignInFlow, issuer: str | None, deadline: float) -> TokenIdentity:
        metadata = self._metadata.get(deadline)
        if issuer is None and metadata.names_itself:
            raise BadToken("a missing issuer of the response")
        if issuer is not None and issuer != self.configuration.issuer:
            raise BadToken("another issuer of the response")
        if not 0 < len(code) <= _LONGEST_CODE:
            raise BadToken("its code")
        token = self._exchange(code, flow.verifier, metadata, deadline)
        try:
            return self._verify(token, flow.nonce, deadline)
        except UnknownKey:
            self._keys.refresh(deadline, KEY_SECONDS)
            return self._verify(token, flow.nonce, deadline)

    def _verify(self, token: str, nonce: str, deadline: float) -> TokenIdentity:
        own = self.configuration
        keys = self._keys.get(deadline)
        return verify_id_token(token, keys, issuer=own.issuer, client_id=own.client_id, nonce=nonce)

    def _exchange(self, code: str, verifier: str, metadata: ProviderMetadata, deadline: float) -> str:
        """Redeem a code for an ID token. The access token that comes with it is not used."""
        own = self.configuration
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": own.redirect_uri,
            "code_verifier": verifier,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if metadata.posts_secret:
            form |= {"client_id": own.client_id, "client_secret": own.client_secret}
        else:
            pair = f"{quote_plus(own.client_id)}:{quote_plus(own.client_secret)}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        found = _send("the code", metadata.token_endpoint, deadline, urlencode(form).encode(), headers)
        if found.status in {400, 401, 403}:
            if _read_object(found.body).get("error") in {"invalid_client", "unauthorized_client"}:
                raise ProviderFault("the code: the provider does not accept the client or its secret")
            raise BadToken("a code that the provider does not accept")
        if found.status != 200:
            raise ProviderFault(f"the code: status {found.status}")
        token = _read_object(found.body).get("id_token")
        if not isinstance(token, str):
            raise ProviderFault("the code: the response has no ID token")
        return token

    def _read_metadata(self, deadline: float) -> ProviderMetadata:
        issuer = self.configuration.issuer
        found = _send("discovery", f"{issuer.rstrip('/')}/.well-known/openid-configuration", deadline)
        if 300 <= found.status < 500 and found.status not in {408, 429}:
            raise WrongDocument(f"has no discovery document: status {found.status}", "check the issuer at the provider")
        if found.status != 200:
            raise ProviderFault(f"discovery: status {found.status}")
        return _parse_metadata(_read_object(found.body), issuer)

    def _read_keys(self, deadline: float) -> tuple[Mapping[str, Any], ...]:
        found = _send("the keys", self._metadata.get(deadline).jwks_uri, deadline)
        if found.status != 200:
            raise ProviderFault(f"the keys: status {found.status}")
        keys = _read_object(found.body).get("keys")
        if not isinstance(keys, list) or len(keys) > _MOST_KEYS:
            raise ProviderFault("the keys: the document has none")
        return tuple(key for key in keys if isinstance(key, dict))


class _Document(Generic[T]):
    """A document of the provider, as it was read last. One reads it, and whoever wants it meanwhile waits for that."""

    def __init__(self, read: Callable[[float], T]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._value: T | None = None
        self._tried = self._found = -float("inf")
        self._fault: ProviderFault | None = None

    def get(self, deadline: float) -> T:
        """The document, not older than `MAX_AGE`."""
        with _Within(self._lock, deadline):
            if self._value is None or time.monotonic() - self._found > MAX_AGE:
                self._update(deadline, RETRY_SECONDS)
            assert self._value is not None
            return self._value

    def refresh(self, deadline: float, seconds: float) -> None:
        """Read it again, unless that was done less than so many seconds ago."""
        with _Within(self._lock, deadline):
            if time.monotonic() - self._tried >= seconds:
                self._update(deadline, 0.0)

    def peek(self) -> T | None:
        """What was read last; nothing is waited for."""
        return self._value

    def _update(self, deadline: float, seconds: float) -> None:
        if self._fault is not None and time.monotonic() - self._tried < seconds:
            raise ProviderFault(self._fault.step)
        self._tried = time.monotonic()
        try:
            self._value, self._fault = self._read(deadline), None
        except ProviderFault as error:
            self._fault = error
            raise
        self._found = time.monotonic()


class _Within:
    """A lock that is waited for until a moment."""

    def __init__(self, lock: threading.Lock, deadline: float) -> None:
        self._lock = lock
        self._deadline = deadline

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=max(0.0, self._deadline - time.monotonic())):
            raise ProviderFault("another sign-in waits for the provider")

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _tell(work: Callable[[], T]) -> T:
    """Do what the provider has a part in; its faults are logged, and refused in one text."""
    try:
        return work()
    except ProviderFault as error:
        _log.warning("the identity provider failed: %s", error.step)
        what = "the identity provider does not answer as it should"
        raise Refused(ErrorCode.IDENTITY_PROVIDER, what, fix="try again in a moment, or tell the data owner") from None


def _send(
    step: str, address: str, deadline: float, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> OutgoingResponse:
    left = deadline - time.monotonic()
    if left <= 0:
        raise ProviderFault(f"{step}: no time is left")
    own = {"Accept": "application/json", "User-Agent": f"tacit/{__version__}", **(headers or {})}
    request = urllib.request.Request(address, body, own)  # noqa: S310 - https, or http to this machine
    try:
        return send_request(request, timeout=left, most_bytes=MAX_BYTES)
    except OutgoingError as error:
        raise ProviderFault(f"{step}: {error.reason}") from None


def _read_object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _parse_metadata(document: Mapping[str, Any], issuer: str) -> ProviderMetadata:
    named = document.get("issuer")
    if named != issuer:
        usable = isinstance(named, str) and is_safe_address(named)
        what = f"the provider calls itself {named}" if usable else "the provider does not say that it is this issuer"
        fix = f"{ISSUER}={named} tacit serve" if usable else "check the issuer at the provider"
        raise WrongDocument(f"{what}; it must be the same to the letter", fix)
    loopback = issuer.startswith("http://")

    def read_address(name: str) -> str:
        found = document.get(name, "")
        if not isinstance(found, str) or not is_safe_address(found, loopback=loopback):
            fix = "use a provider that has it, over https"
            raise WrongDocument(f"the provider's {name} is missing or not https", fix)
        return found

    def lacks(name: str, wanted: tuple[str, ...]) -> bool:
        listed = document.get(name)
        return isinstance(listed, list) and not set(wanted) & {each for each in listed if isinstance(each, str)}

    for name, wanted, what in (
        ("response_types_supported", ("code",), "the authorization code flow"),
        ("code_challenge_methods_supported", ("S256",), "PKCE with S256"),
        ("id_token_signing_alg_values_supported", ALGORITHMS, "ID tokens signed with RSA or elliptic curves"),
    ):
        if lacks(name, wanted):
            raise WrongDocument(f"the provider does not offer {what}", f"switch {what} on at the provider")
    ends = document.get("end_session_endpoint")
    methods = "token_endpoint_auth_methods_supported"
    return ProviderMetadata(
        read_address("authorization_endpoint"),
        read_address("token_endpoint"),
        read_address("jwks_uri"),
        ends if isinstance(ends, str) and is_safe_address(ends, loopback=loopback) else "",
        lacks(methods, ("client_secret_basic",)) and not lacks(methods, ("client_secret_post",)),
        document.get("authorization_response_iss_parameter_supported") is True,
    )


def _add_query(address: str, parameters: Mapping[str, str]) -> str:
    return f"{address}{'&' if '?' in address else '?'}{urlencode(parameters)}"
