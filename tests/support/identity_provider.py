"""An identity provider that can be made to lie: its tokens are signed here with `cryptography`, by no library for them.

It is strict where a good one is: a code is good once, for one client, one redirect URI and the verifier of its PKCE
challenge.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CLIENT, SECRET = "tacit", "s3cret +/=:%"  # a secret that needs its encoding in a Basic header


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def encode_number(number: int) -> str:
    return encode(number.to_bytes((number.bit_length() + 7) // 8, "big"))


@cache
def rsa_key(name: str = "first", bits: int = 2048) -> rsa.RSAPrivateKey:
    """A key by name, made once."""
    return rsa.generate_private_key(65537, bits)


@cache
def ec_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def public_jwk(key: Any, kid: str | None = "first", **more: str) -> dict[str, str]:
    """The public half as a JWK."""
    numbers = key.public_key().public_numbers()
    if isinstance(key, rsa.RSAPrivateKey):
        found = {"kty": "RSA", "n": encode_number(numbers.n), "e": encode_number(numbers.e)}
    else:
        found = {"kty": "EC", "crv": "P-256", **{n: encode(getattr(numbers, n).to_bytes(32, "big")) for n in "xy"}}
    return {**found, **({} if kid is None else {"kid": kid}), **more}


def public_pem(key: rsa.RSAPrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def sign_token(claims: Any, key: Any, **header: Any) -> str:
    """A JWT in compact form; the header says with which algorithm, RS256 unless it says another."""
    header = {"alg": "RS256", "kid": "first", **header}
    header = {name: value for name, value in header.items() if value is not None}
    signed = ".".join(encode(json.dumps(part).encode()) for part in (header, claims))
    return f"{signed}.{encode(_sign(header['alg'], signed.encode(), key))}"


def _sign(algorithm: str, data: bytes, key: Any) -> bytes:
    if algorithm == "RS256":
        return key.sign(data, padding.PKCS1v15(), hashes.SHA256())
    if algorithm == "PS256":
        return key.sign(data, padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256())
    if algorithm == "ES256":
        return b"".join(
            each.to_bytes(32, "big") for each in decode_dss_signature(key.sign(data, ec.ECDSA(hashes.SHA256())))
        )
    if algorithm == "HS256":
        return hmac.digest(key, data, "sha256")
    return b""


class IdentityProvider:
    """What the provider says, which a test may change, and what it was asked."""

    def __init__(self, address: str) -> None:
        self.issuer = address
        self.asked: Counter[str] = Counter()
        self.codes: dict[str, dict[str, str]] = {}
        self.reset()

    def reset(self) -> None:
        """Become an honest provider again."""
        self.user: dict[str, Any] = {"sub": "248289761001"}
        self.keys = [public_jwk(rsa_key(), use="sig", alg="RS256")]
        self.claims: dict[str, Any] = {}  # in place of those that would be right; None takes one away
        self.make_token: Callable[[dict[str, Any]], str] = lambda claims: sign_token(claims, rsa_key())
        self.document: dict[str, Any] = {}
        self.replies: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}  # by path, in place of the right one

    def discover(self) -> dict[str, Any]:
        found = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "end_session_endpoint": f"{self.issuer}/logout",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "id_token_signing_alg_values_supported": ["RS256"],
            **self.document,
        }
        return {name: value for name, value in found.items() if value is not None}

    def authorize(self, query: dict[str, str]) -> str:
        """Sign the user in, and return where the browser is sent."""
        assert query["response_type"] == "code" and query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split() and query["client_id"] == CLIENT and query["nonce"]
        code = secrets.token_urlsafe(16)
        self.codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def redeem(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        client, secret = (unquote_plus(part) for part in pair.split(":"))
        if (client, secret) != (CLIENT, SECRET):
            return 401, {"error": "invalid_client"}
        begun = self.codes.pop(form["code"], None)
        challenge = encode(hashlib.sha256(form["code_verifier"].encode()).digest())
        if begun is None or (begun["redirect_uri"], begun["code_challenge"]) != (form["redirect_uri"], challenge):
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        times = {"iat": now, "exp": now + 300}
        claims = {"iss": self.issuer, "aud": CLIENT, "nonce": begun["nonce"], **times, **self.user, **self.claims}
        token = self.make_token({name: value for name, value in claims.items() if value is not None})
        return 200, {"access_token": "unused-token", "token_type": "Bearer", "id_token": token}


@contextmanager
def run_identity_provider() -> Iterator[IdentityProvider]:
    """A provider on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            provider.asked[parts.path] += 1
            if parts.path in provider.replies:
                return provider.replies[parts.path](self)
            if parts.path == "/authorize":
                place = provider.authorize({name: one for name, (one,) in parse_qs(parts.query).items()})
                self.send_response(302)
                self.send_header("Location", place)
                self.end_headers()
                return None
            found = {"/.well-known/openid-configuration": provider.discover, "/keys": lambda: {"keys": provider.keys}}
            return send_json(self, found[parts.path]()) if parts.path in found else send_json(self, {}, 404)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            provider.asked[self.path] += 1
            if self.path in provider.replies:
                return provider.replies[self.path](self)
            form = {name: one for name, (one,) in parse_qs(body).items()}
            status, found = provider.redeem(form, self.headers.get("Authorization", ""))
            return send_json(self, found, status)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    provider = IdentityProvider(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def send_json(handler: BaseHTTPRequestHandler, value: Any, status: int = 200) -> None:
    body = json.dumps(value).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def trickle(handler: BaseHTTPRequestHandler) -> None:
    """Answer a byte at a time, for as long as anyone reads."""
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(600):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.05)
    except OSError:
        pass


def flood(handler: BaseHTTPRequestHandler) -> None:
    """Answer with more than anyone should read."""
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(4096):
            handler.wfile.write(b" " * 65536)
    except OSError:
        pass


def redirect_to(place: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", place)
        handler.end_headers()

    return reply
