"""Hash what never changes once: plans look measurements up many times, and each holds a tree of scalars."""

from __future__ import annotations

from typing import Any, TypeVar

from tacit.canonical import KEPT_TEXT

Frozen = TypeVar("Frozen", bound=type[Any])
_KEPT = "_kept_hash"


def keep_hash(cls: Frozen) -> Frozen:
    """Return the frozen dataclass with its hash kept on the object once it is computed.

    It is left out where the object is pickled, because another process hashes texts otherwise, and so is the text that
    `canonical_text` keeps.

    >>> from dataclasses import dataclass
    >>> @keep_hash
    ... @dataclass(frozen=True)
    ... class Point:
    ...     x: int
    >>> hash(Point(1)) == hash(Point(1))
    True
    """
    compute: Any = cls.__hash__

    def hash_once(self: Any) -> int:
        found: int | None = self.__dict__.get(_KEPT)
        if found is None:
            found = self.__dict__[_KEPT] = int(compute(self))
        return found

    def without_hash(self: Any) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in (_KEPT, KEPT_TEXT)}

    setattr(cls, "__hash__", hash_once)  # noqa: B010 - a method of a class that is not known here
    setattr(cls, "__getstate__", without_hash)  # noqa: B010 - the same
    return cls
