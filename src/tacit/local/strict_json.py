"""Strict parsing of received JSON: finite numbers and bounded nesting, or a ValueError and nothing else.

>>> parse('{"users": 3}')
{'users': 3}
>>> parse('{"users": 1e999}')
Traceback (most recent call last):
ValueError: 1e999 is not a finite number
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any


def parse(text: bytes | str, number: Callable[[str], Any] | None = None) -> Any:
    """Return what the text says; `number` reads decimals, by default as finite doubles.

    Python's own reader takes NaN and Infinity, turns 1e999 into an infinity, on which `int` raises OverflowError, and
    ends in a RecursionError where brackets are nested deeply.
    """
    try:
        return json.loads(text, parse_float=number or _finite, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("the text is nested too deeply") from error


def _finite(text: str) -> float:
    found = float(text)
    if not math.isfinite(found):
        raise ValueError(f"{text[:40]} is not a finite number")
    return found


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")
