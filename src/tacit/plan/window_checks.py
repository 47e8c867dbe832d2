"""What a window over released rows may say, so that no engine refuses it after the release was paid for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tacit.errors import ErrorCode, Refused
from tacit.query.bound import TypedScalar
from tacit.query.nodes import Literal, Window

_BELOW = 10**6  # rows that LAG, LEAD and NTH_VALUE go, and parts of NTILE


def check_window(window: Window, arguments: Sequence[TypedScalar]) -> None:
    """Refuse a frame that ends before it starts, and a number of rows or of parts that is no constant in range."""
    least = 1 if window.function in {"ntile", "nth_value"} else 0
    for given in arguments[:1] if window.function == "ntile" else arguments[1:2]:
        value = given.scalar.value if isinstance(given.scalar, Literal) else None
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value < _BELOW:
            counted = "parts" if window.function == "ntile" else "rows"
            what = f"{window.function.upper()} takes a constant whole number of {counted}"
            raise Refused(ErrorCode.TYPE, what, at=window.at, fix="write the number")
    if window.frame:
        _, _, ends = window.frame.partition(" BETWEEN ")
        first, _, last = ends.partition(" AND ")
        if first == "UNBOUNDED FOLLOWING" or last == "UNBOUNDED PRECEDING" or _position(first) > _position(last):
            what, fix = "a window's frame ends before it starts", "write the end that comes first before the other"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=window.at, fix=fix)


def _position(end: str) -> float:
    """Where an end of a frame lies, in rows from the row itself."""
    size, _, side = end.partition(" ")
    if end == "CURRENT ROW":
        return 0.0
    rows = math.inf if size == "UNBOUNDED" else float(size)
    return -rows if side == "PRECEDING" else rows
