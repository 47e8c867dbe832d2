"""How each error code is told outside of Python: an HTTP status, an SQLSTATE, and the exit status of the command.

>>> STATUSES[Code.UNKNOWN_TABLE]
Status(http=422, sqlstate='42P01', exit=3)
"""

from __future__ import annotations

from typing import NamedTuple

from tacit.errors import Code


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

STATUSES: dict[Code, Status] = {
    Code.SYNTAX: Status(400, "42601", 3),
    Code.TOO_LARGE: Status(422, "54001", 3),
    Code.STATEMENT: Status(422, _UNSUPPORTED, 3),
    Code.UNSUPPORTED: Status(422, _UNSUPPORTED, 3),
    Code.UNKNOWN_TABLE: Status(422, "42P01", 3),
    Code.UNKNOWN_COLUMN: Status(422, "42703", 3),
    Code.UNKNOWN_FUNCTION: Status(422, "42883", 3),
    Code.AMBIGUOUS: Status(422, "42702", 3),
    Code.RAW_COLUMN: Status(422, "42803", 3),
    Code.AGGREGATE: Status(422, "42803", 3),
    Code.TYPE: Status(422, "42804", 3),
    Code.UNBOUNDED: Status(422, _UNSUPPORTED, 3),
    Code.OVERFLOW: Status(422, "22003", 3),
    Code.PRIVATE_KEY: Status(422, _NO_RIGHT, 3),
    Code.TOO_MANY_GROUPS: Status(422, "54000", 3),
    Code.UNKNOWN_ANALYST: Status(403, _NO_RIGHT, 3),
    Code.PARAMETER: Status(400, "22023", 2),
    Code.BUDGET: Status(402, "53400", 3),
    Code.REQUEST: Status(409, "23505", 3),
    Code.AUTHENTICATION: Status(401, "28P01", 3),
    Code.FORBIDDEN: Status(403, _NO_RIGHT, 3),
    Code.RATE: Status(429, "53400", 3),
    Code.BUSY: Status(503, "53300", 3),
    Code.PROTOCOL: Status(400, "08P01", 3),
    Code.NOT_FOUND: Status(404, "42704", 3),
    Code.REPORT: Status(422, "22023", 3),
    Code.POLICY: Status(422, "XX000", 4),
    Code.DATA: Status(422, "XX000", 5),
    Code.LEDGER: _LEDGER,
    Code.LEDGER_BUSY: _LEDGER,
    Code.LEDGER_UNREACHABLE: _LEDGER,
    Code.LEDGER_FULL: _LEDGER,
    Code.LEDGER_READ_ONLY: _LEDGER,
    Code.LEDGER_DISK: _LEDGER,
    Code.LEDGER_MISSING: _LEDGER,
    Code.LEDGER_OLDER: _LEDGER,
    Code.LEDGER_TAMPERED: _LEDGER,
    Code.LEDGER_ORDER: _LEDGER,
    Code.LEDGER_KEY: _LEDGER,
    Code.LEDGER_WITNESS: _LEDGER,
    Code.LEDGER_SCOPE: _LEDGER,
    Code.FAILED: Status(500, "XX000", 1),
}
