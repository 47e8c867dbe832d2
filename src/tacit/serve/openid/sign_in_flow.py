"""What ties the answer of a provider to the browser that asked: state, nonce and PKCE verifier, from one cookie.

>>> flows = SignInFlows()
>>> begun = flows.begin("/console/budget")
>>> flows.finish(begun.cookie, begun.state).return_path
'/console/budget'
>>> flows.finish(begun.cookie, begun.state) is None  # once only
True
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

HOME = "/console"
MAX_SECONDS = 600.0  # in which someone signs in at the provider
_MOST_USED = 100_000  # flows that are remembered as used; all of them are forgotten when they expire
_LONGEST_COOKIE = 1000  # characters
_PAGE = re.compile(r"/console(?:/[A-Za-z0-9][A-Za-z0-9-]*)*")
_NOT_PAGES = ("/console/oidc", "/console/sign-in", "/console/sign-out", "/console/static")


@dataclass(frozen=True)
class SignInFlow:
    """One sign-in that was begun: what the cookie holds, and what is derived from it."""

    cookie: str
    state: str
    nonce: str
    verifier: str
    return_path: str

    @property
    def challenge(self) -> str:
        """The S256 challenge of PKCE."""
        return _encode(hashlib.sha256(self.verifier.encode()).digest())


class SignInFlows:
    """Begins sign-ins and takes their answers back.

    **Rule.** `finish` returns a flow only for a cookie that `begin` of this process made less than `MAX_SECONDS` ago,
    together with its own state, and only once. State, nonce and verifier are HMACs of the cookie under a key that this
    process alone has, so whoever has none of them guesses 256 bits, and who has one of them learns nothing of the
    others. Nothing is kept of a flow before its answer comes, so starting many sign-ins pushes out no other.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._used: OrderedDict[bytes, float] = OrderedDict()

    def begin(self, return_path: str, now: float | None = None) -> SignInFlow:
        """Begin a sign-in that leads to a page of the console."""
        moment = int(time.monotonic() if now is None else now)
        content = f"{moment}.{secrets.token_urlsafe(32)}.{_encode(choose_return_path(return_path).encode())}"
        return self._derive(f"{content}.{self._mac('cookie', content)}", content)

    def finish(self, cookie: str, state: str, now: float | None = None) -> SignInFlow | None:
        """The flow of a cookie and the state that came back; None where they do not belong together, or not any more.

        A flow that is returned is used up, whatever becomes of it.
        """
        now = time.monotonic() if now is None else now
        content, _, mac = cookie[:_LONGEST_COOKIE].rpartition(".")
        if not hmac.compare_digest(self._mac("cookie", content).encode(), _to_bytes(mac)):
            return None
        flow = self._derive(cookie, content)
        if not hmac.compare_digest(flow.state.encode(), _to_bytes(state)):
            return None
        begun = int(content.partition(".")[0])
        if not begun <= now + 1 <= begun + MAX_SECONDS + 1:
            return None
        return flow if self._use(content, now) else None

    def _use(self, content: str, now: float) -> bool:
        name = hashlib.sha256(content.encode()).digest()
        with self._lock:
            while self._used and next(iter(self._used.values())) < now - MAX_SECONDS - 1:
                self._used.popitem(last=False)
            if name in self._used:
                return False
            self._used[name] = now
            while len(self._used) > _MOST_USED:
                self._used.popitem(last=False)
            return True

    def _derive(self, cookie: str, content: str) -> SignInFlow:
        path = base64.urlsafe_b64decode(content.rpartition(".")[2] + "==").decode()
        state, nonce, verifier = (self._mac(purpose, content) for purpose in ("state", "nonce", "verifier"))
        return SignInFlow(cookie, state, nonce, verifier, path)

    def _mac(self, purpose: str, content: str) -> str:
        return _encode(hmac.digest(self._key, _to_bytes(f"{purpose}\0{content}"), "sha256"))


def choose_return_path(given: str) -> str:
    """A path of the console's own pages as it was given, or else the first page: never an address elsewhere.

    >>> [choose_return_path(each) for each in ("/console/budget", "//evil.example", "/console/../x", "https://evil.example")]
    ['/console/budget', '/console', '/console', '/console']
    """
    is_page = len(given) <= 200 and _PAGE.fullmatch(given) is not None and not given.startswith(_NOT_PAGES)
    return given if is_page else HOME


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
