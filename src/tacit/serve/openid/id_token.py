"""Whether an ID token is the provider's word about who signed in, to this server, in this sign-in, now."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacit.extras import missing_extra

try:
    from cryptography.exceptions import UnsupportedAlgorithm
    from joserfc import jws
    from joserfc.errors import JoseError
    from joserfc.jwk import ECKey, RSAKey
    from joserfc.jwt import JWTClaimsRegistry
except ImportError:
    raise missing_extra("oidc", "sign-in with OpenID Connect", "joserfc") from None

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""Signatures that only the provider can make: no `none`, and no HMAC, whose key a verifier could sign with."""
SKEW = 60  # seconds by which clocks may differ
_LONGEST = 65_536  # characters of a token
_LONGEST_CLAIM = 500  # characters of a subject or an address
_RSA_BITS = (2048, 8192)
_PUBLIC = {"RSA": ("kty", "n", "e"), "EC": ("kty", "crv", "x", "y")}
_CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}


class BadToken(Exception):
    """A token that is not believed. `reason` is one of a few words, and never a part of the token."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class UnknownKey(BadToken):
    """A token that is signed with a key that the provider did not publish when its keys were read."""


@dataclass(frozen=True)
class TokenIdentity:
    """Who an ID token is about. `email` is empty unless the provider says that it has verified it."""

    issuer: str
    subject: str
    email: str = ""


def verify_id_token(
    token: str, keys: Sequence[Mapping[str, Any]], *, issuer: str, client_id: str, nonce: str, now: int | None = None
) -> TokenIdentity:
    """Return who a token is about, or raise BadToken.

    **Rule.** The signature is made with an algorithm of `ALGORITHMS`, under the one published key that its header
    names; a key that the token itself brings is never used. `iss` equals `issuer` exactly; `aud` has `client_id`, and
    `azp` is `client_id` where it is present or there are several audiences; the token has begun and not expired, give
    or take `SKEW` seconds; and `nonce` is that of the sign-in. All of these claims but `nbf` and `azp` must be there.
    """
    if len(token) > _LONGEST or not token.isascii():
        raise BadToken("its size")
    header = _read_header(token)
    algorithm = header.get("alg")
    if algorithm not in ALGORITHMS:
        raise BadToken("its algorithm")
    key = _choose_key(keys, algorithm, header.get("kid"))
    registry = jws.JWSRegistry(algorithms=[algorithm], strict_check_header=False)
    try:
        payload = jws.deserialize_compact(token, key, registry=registry).payload
        claims = json.loads(payload or b"", parse_constant=_refuse_constant)
    except (JoseError, ValueError, TypeError, LookupError, RecursionError, UnsupportedAlgorithm):
        raise BadToken("its signature") from None
    if not isinstance(claims, dict):
        raise BadToken("its claims")
    _check_claims(claims, issuer, client_id, nonce, now)
    email = claims.get("email")
    is_verified = claims.get("email_verified") is True and isinstance(email, str) and _is_printable(email)
    return TokenIdentity(issuer, claims["sub"], email if is_verified and isinstance(email, str) else "")


def _read_header(token: str) -> dict[str, Any]:
    try:
        header = json.loads(_decode(token.partition(".")[0]))
    except (ValueError, RecursionError):
        raise BadToken("its form") from None
    if not isinstance(header, dict):
        raise BadToken("its form")
    return header


def _choose_key(keys: Sequence[Mapping[str, Any]], algorithm: str, kid: object) -> RSAKey | ECKey:
    """The one published key that fits: by its identifier, or the only one there is where the token names none.

    **Rule.** Whatever the members of that key are, the outcome is a key or BadToken: each member that is read is text,
    the curve is the one of the algorithm, and the library refuses or imports the rest.
    """
    kind = "EC" if algorithm.startswith("ES") else "RSA"
    fitting = [
        key
        for key in keys
        if key.get("kty") == kind
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
        and (kid is None or key.get("kid") == kid)
    ]
    if not fitting and kid is not None:
        raise UnknownKey("a key that is not published")
    if len(fitting) != 1:
        raise BadToken("an ambiguous key")
    public: Any = {name: fitting[0].get(name) for name in _PUBLIC[kind]}
    if not all(isinstance(value, str) for value in public.values()):
        raise BadToken("a damaged key")
    if public.get("crv") != _CURVES.get(algorithm):  # neither is there for RSA
        raise BadToken("a damaged key")
    try:
        if kind == "EC":
            return ECKey.import_key(public)
        if not _RSA_BITS[0] <= int.from_bytes(_decode(public["n"]), "big").bit_length() <= _RSA_BITS[1]:
            raise BadToken("the size of a key")
        return RSAKey.import_key(public)
    except (JoseError, ValueError, TypeError, LookupError, ArithmeticError, UnsupportedAlgorithm):
        raise BadToken("a damaged key") from None


def _refuse_constant(name: str) -> None:
    """NaN and Infinity are not JSON, and no time is after them."""
    raise ValueError(name)


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _check_claims(claims: dict[str, Any], issuer: str, client_id: str, nonce: str, now: int | None) -> None:
    registry = JWTClaimsRegistry(
        now=now,
        leeway=SKEW,
        iss={"essential": True, "value": issuer},
        aud={"essential": True, "value": client_id},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
        nonce={"essential": True, "value": nonce},
    )
    try:
        registry.validate(claims)
    except JoseError as error:
        raise BadToken(f"its claim {_name_claim(error)}") from None
    for name, wanted in (("iss", issuer), ("nonce", nonce)):
        if claims[name] != wanted:  # one value, and not a list that has it
            raise BadToken(f"its claim {name}")
    several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if (several or "azp" in claims) and claims.get("azp") != client_id:
        raise BadToken("its claim azp")
    if not _is_printable(claims["sub"]):
        raise BadToken("its claim sub")


def _name_claim(error: JoseError) -> str:
    """The claim that is wrong, where it is one of those that are checked: the text of a token is not repeated."""
    found = str(getattr(error, "claim", "")).partition(",")[0]
    return found if found in {"iss", "aud", "sub", "exp", "iat", "nbf", "nonce"} else "exp"


def _is_printable(text: object) -> bool:
    return isinstance(text, str) and 0 < len(text) <= _LONGEST_CLAIM and text.isprintable() and text == text.strip()
