"""The refusal of a question about a locked table, for analysts who may not name all tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from tacit.errors import ErrorCode, Refused
from tacit.policy.model import Policy


@contextmanager
def hide_locked(tables: Collection[str], policy: Policy) -> Iterator[None]:
    """Leave the names of locked tables out of a refusal to whoever may not name all of these tables."""
    try:
        yield
    except Refused as refused:
        if refused.code is not ErrorCode.TABLE_LOCKED or all(policy.table(name) is not None for name in tables):
            raise
    else:
        return
    what = "a table that the question reads is locked since a question about the data failed"
    fix = "tell the data owner, who looks at the cause and unlocks it"
    raise Refused(ErrorCode.TABLE_LOCKED, what, fix=fix) from None
