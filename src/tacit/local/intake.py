"""The collector's door: bad reports are left out and counted, good ones are added.

>>> from tacit.local import KAry, Summary
>>> door = Intake(Summary.empty(KAry(3, 2), survey="lunch"))
>>> door.take([0, 2, 7], ids=["a", "b", "c"])
Taken(added=2, malformed=1, replayed=0)
>>> door.take([0, 1], ids=["a", "d"])
Taken(added=1, malformed=0, replayed=1)
>>> door.summary.users
3
>>> again = Intake.from_bytes(door.to_bytes())  # after a restart
>>> again.take([0], ids=["a"])
Taken(added=0, malformed=0, replayed=1)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from tacit.errors import Code, ParameterError, Refused
from tacit.local.summary import Summary
from tacit.local.tally import Tally

_MAGIC: dict[type[Summary] | type[Tally], bytes] = {
    Summary: b"tacit intake 1 summary\n",
    Tally: b"tacit intake 1 tally\n",
}
_KEY = _DIGEST = 16
_LENGTH = 8  # bytes that say how long the summary is

Kept = TypeVar("Kept", Summary, Tally)


@dataclass(frozen=True)
class Taken:
    """What became of a batch of reports."""

    added: int
    malformed: int
    replayed: int


@dataclass
class Intake(Generic[Kept]):
    """Takes reports into a `summary` of values or a tally of numbers, each identity once.

    It remembers 16 bytes of every identity; the summary itself stays of constant size. Identities are those that the
    collector gave out, one a person: without them anyone may answer as often as they like, and what that does is
    stated by `influence`.
    """

    summary: Kept
    _seen: set[bytes] = field(default_factory=set, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.summary, Summary | Tally):
            fix = "Intake(Summary.empty(protocol)), or Intake(Tally.empty(protocol)) for a mean"
            raise ParameterError("summary", f"needs a summary or a tally, got {type(self.summary).__name__}", fix=fix)

    def take(self, reports: Any, ids: Iterable[str] | None = None, mark: str | None = None) -> Taken:
        """Add the good ones of these reports. `ids` name their senders; `mark` is that of the survey they answered.

        A report of another shape or survey refuses the batch. One that the protocol does not send, or whose sender has
        reported before, is left out; the first of several by one sender is taken.
        """
        if mark is not None and mark != self.summary.mark:
            raise Refused(Code.REPORT, "these reports answer another survey", fix="send them to its own collector")
        shaped = self.summary.protocol.shaped(reports)
        good = self.summary.protocol.well_formed(shaped)
        chosen, new = good, set[bytes]()
        if ids is not None:
            keys = _keys(ids)
            if len(keys) != len(good):
                what = "there is not one identity for each report"
                raise Refused(Code.REPORT, what, fix="give as many ids as reports")
            chosen = np.zeros(len(good), dtype=np.bool_)
            for place in np.flatnonzero(good).tolist():
                key = keys[place]
                chosen[place] = key not in new and key not in self._seen
                new.add(key)
        self.summary = self.summary.add(shaped[chosen])
        self._seen |= new
        added, malformed = int(np.count_nonzero(chosen)), int(np.count_nonzero(~good))
        return Taken(added, malformed, len(good) - added - malformed)

    def to_bytes(self) -> bytes:
        """The summary and what is remembered of identities, with a version and a checksum: 16 bytes for each identity.

        Both are of the same moment. So whoever keeps these bytes, and starts from them after a crash, has lost at most
        what came since they were written: it can be sent again, and what came before is still refused. Of an identity
        16 bytes of a hash are kept; one that can be guessed can be found in them.
        """
        inner = self.summary.to_bytes()
        head = _MAGIC[type(self.summary)] + len(inner).to_bytes(_LENGTH, "little")
        body = b"".join([head, inner, *sorted(self._seen)])
        return body + hashlib.blake2b(body, digest_size=_DIGEST).digest()

    @classmethod
    def from_bytes(cls, data: bytes) -> Intake[Any]:
        """What `to_bytes` wrote; anything else is refused. The checksum finds accidents, not forgeries."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise _not_an_intake("it is not bytes")
        data = bytes(data)
        body, digest = data[:-_DIGEST], data[-_DIGEST:]
        kept = next((kind for kind, magic in _MAGIC.items() if body.startswith(magic)), None)
        if kept is None or hashlib.blake2b(body, digest_size=_DIGEST).digest() != digest:
            raise _not_an_intake("it is cut short, changed, or of another version")
        start = len(_MAGIC[kept]) + _LENGTH
        end = start + int.from_bytes(body[start - _LENGTH : start], "little")
        summary: Any = kept.from_bytes(body[start:end])
        keys = [body[place : place + _KEY] for place in range(end, len(body), _KEY)]
        found = cls(summary, set(keys))
        if (len(body) - end) % _KEY or len(keys) > summary.users or found.to_bytes() != data:
            raise _not_an_intake("its identities are impossible")
        return found


def _keys(ids: Iterable[str]) -> list[bytes]:
    names: list[Any] = list(ids) if isinstance(ids, Iterable) and not isinstance(ids, str | bytes) else [None]
    if not all(isinstance(name, str) for name in names):
        raise ParameterError("ids", "needs a list of texts, one a report", fix='ids=["p1", "p2"], say')
    return [_key(name) for name in names]


def _key(name: str) -> bytes:
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_KEY).digest()


def _not_an_intake(reason: str) -> Refused:
    return Refused(Code.REPORT, f"this is no intake: {reason}", fix="read what Intake.to_bytes wrote")
