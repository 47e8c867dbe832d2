"""What a window over released rows may say, so that no engine refuses it after the release was paid for."""

from __future__ import annotations

import math

from tacit.errors import ErrorCode, Refused
from tacit.query.nodes import Literal, Scalar, Window

_MOST = 10**6  # rows that LAG, LEAD and NTH_VALUE go, and parts of NTILE
_LEAST = {"ntile": 1, "nth_value": 1, "lag": 0, "lead": 0}


def check_window(window: Window) -> None:
    """Refuse a frame that ends before it starts, and numbers of rows or of parts that are no numbers written out."""
    least = _LEAST.get(window.function) if window.aggregate is None else None
    if least is not None:
        given = window.arguments[:1] if window.function == "ntile" else window.arguments[1:2]
        for each in given:
            _check_number(window, each, least)
    if window.frame:
        _, _, ends = window.frame.partition(" BETWEEN ")
        first, _, last = ends.partition(" AND ")
        if first == "UNBOUNDED FOLLOWING" or last == "UNBOUNDED PRECEDING" or _position(first) > _position(last):
            what, fix = "a window's frame ends before it starts", "write the end that comes first before the other"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=window.at, fix=fix)


def _check_number(window: Window, given: Scalar, least: int) -> None:
    value = given.value if isinstance(given, Literal) else None
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _MOST:
        what = f"{window.function.upper()} takes a whole number from {least} to {_MOST:,}, written out"
        raise Refused(ErrorCode.UNSUPPORTED, what, at=window.at, fix="write the number")


def _position(end: str) -> float:
    """Where an end of a frame lies, in rows from the row itself."""
    size, _, side = end.partition(" ")
    if end == "CURRENT ROW":
        return 0.0
    rows = math.inf if size == "UNBOUNDED" else float(size)
    return -rows if side == "PRECEDING" else rows
