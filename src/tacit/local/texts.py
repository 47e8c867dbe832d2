"""The strings that people have, as a list: one string would be a list of its letters.

>>> texts_of("texts", ("cat", "dog"))
['cat', 'dog']
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tacit.errors import ParameterError


def texts_of(name: str, values: Any) -> list[str]:
    """A list of strings, a person each. They are private: an error names none."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ParameterError(name, f"needs a list of strings, got {type(values).__name__}", fix=f'{name}=["cat"], say')
    found = list(values)
    other = {type(value).__name__ for value in found if not isinstance(value, str)}
    if other:
        raise ParameterError(
            name, f"needs strings, got {', '.join(sorted(other))}", fix="make each a str, or leave it out"
        )
    return found
