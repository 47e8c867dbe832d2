"""A release as bytes, for the ledger to keep. What is stored is what is shown, now and on every repeat.

>>> release = Release([("flu", datetime.date(2030, 1, 2)), (None, None)], [[12, 5]])
>>> unpack(pack(release)) == release
True
"""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.query.types import Key

GroupKeys = tuple[Key | None, ...]
_encode = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


@dataclass(frozen=True)
class StoredClip:
    """The clip that was chosen, and estimates of what it cuts off and of what there is, all in the norm's units.

    The `norm` that is clipped is 1 or 2; only 2 is written.
    """

    clip: int
    lost: int
    whole: int
    norm: int = 1

    @property
    def missing(self) -> Fraction:
        """About which part of the whole is cut off: at most nine tenths, beyond which no estimate means much."""
        return min(Fraction(9, 10), Fraction(self.lost, self.whole)) if self.whole > 0 else Fraction(0)


@dataclass(frozen=True)
class Release:
    """For each part, an integer for each group, or as many as a top-k names, one group after the other.

    `groups` are the selected ones; None where all are public. `clip` is there where one was chosen, and `sizes` where
    bounds of values were (`answers/chosen_bounds.py`).
    """

    groups: list[GroupKeys] | None
    parts: list[list[int]]
    clip: StoredClip | None = None
    sizes: tuple[int, ...] | None = None


def pack(release: Release) -> bytes:
    """Canonical bytes; integers of any size."""
    groups = None if release.groups is None else [[_plain(key) for key in group] for group in release.groups]
    parts = ",".join(map(_encode, release.parts))  # one at a time: other threads run in between
    clip = "" if release.clip is None else f'"clip":{_encode(_list_clip(release.clip))},'
    sizes = "" if release.sizes is None else f',"sizes":{_encode(list(release.sizes))}'
    return f'{{{clip}"groups":{_encode(groups)},"parts":[{parts}]{sizes}}}'.encode()


def pack_all(releases: list[Release]) -> bytes:
    """Canonical bytes of several releases, or of none; of one, those of itself."""
    return pack(releases[0]) if len(releases) == 1 else b"[" + b",".join(map(pack, releases)) + b"]"


def unpack_all(stored: bytes) -> list[Release]:
    """The releases that `pack_all` wrote."""
    found = json.loads(stored)
    return [_release(each) for each in (found if isinstance(found, list) else [found])]


def unpack(stored: bytes) -> Release:
    """The release that `pack` wrote."""
    return _release(json.loads(stored))


def read_clip(stored: bytes | None) -> StoredClip:
    """The clip of a release that has one."""
    assert stored is not None
    clip = unpack(stored).clip
    assert clip is not None
    return clip


def _release(found: Any) -> Release:
    groups = found["groups"]
    shown = None if groups is None else [tuple(_key(key) for key in group) for group in groups]
    clip = StoredClip(*found["clip"]) if "clip" in found else None
    return Release(shown, found["parts"], clip, tuple(found["sizes"]) if "sizes" in found else None)


def _list_clip(clip: StoredClip) -> list[int]:
    return [clip.clip, clip.lost, clip.whole, *([clip.norm] if clip.norm != 1 else [])]


def _plain(key: Key | None) -> Any:
    return {"date": key.isoformat()} if isinstance(key, datetime.date) else key


def _key(plain: Any) -> Key | None:
    if isinstance(plain, dict):
        return datetime.date.fromisoformat(plain["date"])
    key: Key | None = plain
    return key
