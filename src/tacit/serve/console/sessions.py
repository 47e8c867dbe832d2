"""Who is signed in: sessions in the memory of this process, known by a random cookie.

An owner sees them by an identifier that opens nothing, and can end them.

>>> sessions = SessionStore()
>>> token = sessions.open("ada", b"password's own", "192.0.2.7")
>>> sessions.find(token).user
'ada'
>>> [(session.user, session.address) for session in sessions.list_open()]
[('ada', '192.0.2.7')]
>>> sessions.end(sessions.list_open()[0].identifier)
1
>>> sessions.find(token) is None
True
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.answers.answer import Answer
    from tacit.serve.console.distinguishing_game import DistinguishingGame

_IDLE, _MAX_AGE = 2 * 3600.0, 12 * 3600.0  # seconds: since the last page, and since signing in
_MOST = 1000  # sessions; the one unused for longest goes first
_MAX_PER_USER = 8  # sessions of one person
_MAX_ANSWERS = 20  # answers of a session
_SIZE = 200_000  # characters and cells of all of them


class SignInMethod(StrEnum):
    """How a session was opened: with a password, or with an account at an identity provider."""

    PASSWORD = "password"  # noqa: S105 - the name of a method
    OPENID = "openid"


@dataclass(frozen=True)
class AskedQuestion:
    """A question as it was typed, and its answer: only in memory, for as long as its asker stays."""

    sql: str
    epsilon: str
    confidence: str
    answer: Answer
    within: str = ""


@dataclass
class ConsoleSession:
    """One person at one browser.

    `proof` is of the password's verifier and, where an identity provider opened it, of the link: a new password ends
    the session, and so does another link.
    """

    user: str
    proof: bytes
    token: str  # the one that every form carries
    began: float
    seen: float
    asked: OrderedDict[int, AskedQuestion] = field(default_factory=OrderedDict)
    game: DistinguishingGame | None = None
    attacks: int = 0
    identifier: str = ""  # by which an owner names it; it opens nothing
    opened: float = 0.0  # by the clock of the wall, as are the times below
    used: float = 0.0
    address: str = ""  # from which it was opened
    last_address: str = ""
    is_ended: bool = False  # by an owner: what it still waits for is not shown
    method: SignInMethod = SignInMethod.PASSWORD

    def keep(self, asked: AskedQuestion) -> None:
        """Keep an answer for its page and its downloads; the oldest go, and the newest stays however large it is."""
        entry = asked.answer.receipt.entry
        self.asked[entry] = asked
        self.asked.move_to_end(entry)
        while len(self.asked) > 1 and (len(self.asked) > _MAX_ANSWERS or sum(map(_size, self.asked.values())) > _SIZE):
            self.asked.popitem(last=False)

    @property
    def newest_entries(self) -> dict[str, tuple[int, str]]:
        """For each question of this session by the ledger's name for it: the newest entry, and its words."""
        return {each.answer.receipt.key[:12]: (entry, each.sql) for entry, each in self.asked.items()}


class SessionStore:
    """All sessions. A token is 256 random bits, and only its hash is kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: OrderedDict[bytes, ConsoleSession] = OrderedDict()

    def open(self, user: str, proof: bytes, address: str = "", method: SignInMethod = SignInMethod.PASSWORD) -> str:
        """Begin a session, and give the token for its cookie."""
        token, now, moment = secrets.token_urlsafe(32), time.monotonic(), time.time()
        made = ConsoleSession(
            user,
            proof,
            secrets.token_urlsafe(32),
            now,
            now,
            identifier=secrets.token_hex(8),
            opened=moment,
            used=moment,
            address=address,
            last_address=address,
            method=method,
        )
        with self._lock:
            own = [key for key, session in self._sessions.items() if session.user == user]
            for key in own[: max(0, len(own) - _MAX_PER_USER + 1)]:
                del self._sessions[key]
            self._sessions[_key(token)] = made
            while len(self._sessions) > _MOST:
                self._sessions.popitem(last=False)
        return token

    def find(self, token: str, now: float | None = None, address: str = "") -> ConsoleSession | None:
        """The session of a token, unless it is over; `address` is where it is used from now."""
        now = time.monotonic() if now is None else now
        with self._lock:
            found = self._sessions.get(_key(token))
            if found is None:
                return None
            if _is_over(found, now):
                del self._sessions[_key(token)]
                return None
            found.seen, found.used = now, time.time()
            found.last_address = address or found.last_address
            self._sessions.move_to_end(_key(token))
            return found

    def close(self, token: str) -> None:
        """End a session."""
        with self._lock:
            self._sessions.pop(_key(token), None)

    def list_open(self, now: float | None = None) -> list[ConsoleSession]:
        """The sessions that are not over, the one used last first."""
        now = time.monotonic() if now is None else now
        with self._lock:
            return [session for session in reversed(self._sessions.values()) if not _is_over(session, now)]

    def end(self, *identifiers: str) -> int:
        """End the sessions of these identifiers at once, and say how many there were."""
        with self._lock:
            found = [key for key, session in self._sessions.items() if session.identifier in identifiers]
            for key in found:
                ended = self._sessions.pop(key)
                ended.is_ended = True
                ended.asked.clear()
            return len(found)


def _is_over(session: ConsoleSession, now: float) -> bool:
    return now - session.seen > _IDLE or now - session.began > _MAX_AGE


def _size(asked: AskedQuestion) -> int:
    return len(asked.sql) + len(asked.answer) * len(asked.answer.headings)


def _key(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
