"""Frozen dataclasses whose constructor takes more than it keeps: any number in, a Fraction kept."""

from __future__ import annotations


def set_fields(instance: object, **fields: object) -> None:
    """Set fields of a frozen dataclass, in its constructor."""
    for name, value in fields.items():
        object.__setattr__(instance, name, value)
