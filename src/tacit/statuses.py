"""How each error code is told outside of Python: an HTTP status, an SQLSTATE, and the exit status of the command.

>>> STATUSES[ErrorCode.UNKNOWN_TABLE]
Status(http=422, sqlstate='42P01', exit=3)
"""

from __future__ import annotations

from typing import NamedTuple

from tacit.errors import ErrorCode


class Status(NamedTuple):
    """What an error is for a web client, a PostgreSQL client and a shell.

    HTTP's 422 is a question that was understood and is not answered. A used-up budget is 402 and not 429: waiting does
    not help, and clients would try again by themselves. The exit statuses are 1 failed, 2 a wrong option or parameter,
    3 refused, 4 the policy, 5 the data, 6 the ledger.
    """

    http: int
    sqlstate: str
    exit: int


_LEDGER = Status(503, "58000", 6)
_NO_RIGHT = "42501"
_UNSUPPORTED = "0A000"

STATUSES: dict[ErrorCode, Status] = {
    ErrorCode.SYNTAX: Status(400, "42601", 3),
    ErrorCode.TOO_LARGE: Status(422, "54001", 3),
    ErrorCode.STATEMENT: Status(422, _UNSUPPORTED, 3),
    ErrorCode.UNSUPPORTED: Status(422, _UNSUPPORTED, 3),
    ErrorCode.UNKNOWN_TABLE: Status(422, "42P01", 3),
    ErrorCode.UNKNOWN_COLUMN: Status(422, "42703", 3),
    ErrorCode.UNKNOWN_FUNCTION: Status(422, "42883", 3),
    ErrorCode.AMBIGUOUS: Status(422, "42702", 3),
    ErrorCode.RAW_COLUMN: Status(422, "42803", 3),
    ErrorCode.AGGREGATE: Status(422, "42803", 3),
    ErrorCode.TYPE: Status(422, "42804", 3),
    ErrorCode.UNBOUNDED: Status(422, _UNSUPPORTED, 3),
    ErrorCode.OVERFLOW: Status(422, "22003", 3),
    ErrorCode.PRIVATE_KEY: Status(422, _NO_RIGHT, 3),
    ErrorCode.TOO_MANY_GROUPS: Status(422, "54000", 3),
    ErrorCode.UNKNOWN_ANALYST: Status(403, _NO_RIGHT, 3),
    ErrorCode.PARAMETER: Status(400, "22023", 2),
    ErrorCode.BUDGET: Status(402, "53400", 3),
    ErrorCode.REQUEST: Status(409, "23505", 3),
    ErrorCode.TABLE_LOCKED: Status(423, "55006", 3),
    ErrorCode.AUTHENTICATION: Status(401, "28P01", 3),
    ErrorCode.FORBIDDEN: Status(403, _NO_RIGHT, 3),
    ErrorCode.RATE: Status(429, "53400", 3),
    ErrorCode.BUSY: Status(503, "53300", 3),
    ErrorCode.PROTOCOL: Status(400, "08P01", 3),
    ErrorCode.NOT_FOUND: Status(404, "42704", 3),
    ErrorCode.IDENTITY_PROVIDER: Status(503, "58000", 3),
    ErrorCode.UNLINKED_IDENTITY: Status(403, "28000", 3),
    ErrorCode.REPORT: Status(422, "XX000", 3),
    ErrorCode.POLICY: Status(422, "XX000", 4),
    ErrorCode.DATA: Status(422, "XX000", 5),
    ErrorCode.LEDGER: _LEDGER,
    ErrorCode.LEDGER_BUSY: _LEDGER,
    ErrorCode.LEDGER_UNREACHABLE: _LEDGER,
    ErrorCode.LEDGER_FULL: _LEDGER,
    ErrorCode.LEDGER_READ_ONLY: _LEDGER,
    ErrorCode.LEDGER_DISK: _LEDGER,
    ErrorCode.LEDGER_MISSING: _LEDGER,
    ErrorCode.LEDGER_OLDER: _LEDGER,
    ErrorCode.LEDGER_TAMPERED: _LEDGER,
    ErrorCode.LEDGER_ORDER: _LEDGER,
    ErrorCode.LEDGER_KEY: _LEDGER,
    ErrorCode.LEDGER_WITNESS: _LEDGER,
    ErrorCode.LEDGER_SCOPE: _LEDGER,
    ErrorCode.LEDGER_EPOCH: _LEDGER,
    ErrorCode.FAILED: Status(500, "XX000", 1),
}
