"""The collector's door: bad reports are left out and counted, good ones are added.

>>> from tacit.local import KAry, Summary
>>> door = Intake(Summary.empty(KAry(3, 2), survey="lunch"))
>>> door.take([0, 2, 7], ids=["a", "b", "c"])
Taken(added=2, malformed=1, replayed=0)
>>> door.take([0, 1], ids=["a", "d"])
Taken(added=1, malformed=0, replayed=1)
>>> door.summary.users
3
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.errors import Code, Refused
from tacit.local.summary import Summary


@dataclass(frozen=True)
class Taken:
    """What became of a batch of reports."""

    added: int
    malformed: int
    replayed: int


@dataclass
class Intake:
    """Takes reports into a `summary`, each identity once.

    It remembers 16 bytes of every identity; the summary itself stays of constant size. Identities are those that the
    collector gave out, one a person: without them anyone may answer as often as they like, and what that does is
    stated by `Frequency.influence`.
    """

    summary: Summary
    _seen: set[bytes] = field(default_factory=set, repr=False)

    def take(self, reports: Any, ids: Sequence[str] | None = None, mark: str | None = None) -> Taken:
        """Add the good ones of these reports. `ids` name their senders; `mark` is that of the survey they answered.

        A report of another shape or survey refuses the batch. One that the protocol does not send, or whose sender has
        reported before, is left out; the first of several by one sender is taken.
        """
        if mark is not None and mark != self.summary.mark:
            raise Refused(Code.REPORT, "these reports answer another survey", fix="send them to its own collector")
        good = self.summary.protocol.well_formed(reports)
        if ids is not None and len(ids) != len(good):
            raise Refused(Code.REPORT, "there is not one identity for each report", fix="give as many ids as reports")
        fresh = np.ones(len(good), dtype=np.bool_)
        keys: list[bytes] = []
        if ids is not None:
            keys = [_key(name) for name in ids]
            known = set(self._seen)
            for place in np.flatnonzero(good).tolist():
                fresh[place] = keys[place] not in known
                known.add(keys[place])
        chosen = good & fresh
        self.summary = self.summary.add(np.asarray(reports)[chosen])
        self._seen.update(keys[place] for place in np.flatnonzero(chosen).tolist() if keys)
        malformed = int(np.count_nonzero(~good))
        return Taken(int(np.count_nonzero(chosen)), malformed, len(good) - int(np.count_nonzero(chosen)) - malformed)


def _key(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=16).digest()
