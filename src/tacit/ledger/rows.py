"""The ledger's rows as values, read and written inside a transaction of the caller.

What was spent stands in two books, the totals and the last entries. They must agree, or nothing goes on.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any, cast

import apsw

from tacit.accounting.filter import Amount, Standing
from tacit.errors import Code, LedgerError
from tacit.ledger.budget import Limits
from tacit.ledger.entries import COLUMNS, GENESIS, Entry, Kind, digest, from_values, seal, values

NOTHING = Amount.zero()
ALL = ""  # whose row in the totals counts everyone, and whose entries hold the caps

_SELECT = f"SELECT {', '.join(COLUMNS)} FROM entries"
_INSERT = f"INSERT INTO entries VALUES ({', '.join('?' * len(COLUMNS))})"


def tampered(what: str) -> LedgerError:
    """The error of a ledger that contradicts itself."""
    fix = "keep the file as it is, verify it, and find out who wrote to it; an older copy would forget what was spent"
    return LedgerError(Code.LEDGER_TAMPERED, what, fix=fix)


def entry_at(connection: apsw.Connection, sequence: int) -> Entry | None:
    """The entry of that number."""
    return _entry(connection.execute(f"{_SELECT} WHERE sequence = ?", (sequence,)).fetchone())


def entries_after(connection: apsw.Connection, sequence: int, count: int) -> list[Entry]:
    """The next entries, at most `count` of them."""
    rows = connection.execute(f"{_SELECT} WHERE sequence > ? ORDER BY sequence LIMIT ?", (sequence, count))
    return [entry for entry in map(_entry, rows.fetchall()) if entry is not None]


def last_of(connection: apsw.Connection, who: str) -> Entry | None:
    """The last entry of an analyst, or the one with the caps for ALL."""
    return _entry(connection.execute(f"{_SELECT} WHERE who = ? ORDER BY sequence DESC LIMIT 1", (who,)).fetchone())


def last(connection: apsw.Connection) -> Entry | None:
    """The last entry, after checking that it is whole and is the one the head names."""
    entry = _entry(connection.execute(f"{_SELECT} ORDER BY sequence DESC LIMIT 1").fetchone())
    found = (0, GENESIS) if entry is None else (entry.sequence, entry.hash)
    if connection.execute("SELECT sequence, hash FROM head").fetchall() != [found]:
        raise tampered("the last entry is not the one that the head names")
    if entry is not None and digest(entry) != entry.hash:
        raise tampered("the last entry was altered")
    return entry


def standing(connection: apsw.Connection, who: str) -> Standing | None:
    """What is spent and the cap last recorded, after checking the totals against the last entry."""
    row = connection.execute(
        "SELECT epsilon, delta, cap_epsilon, cap_delta FROM totals WHERE who = ?", (who,)
    ).fetchone()
    entry = last(connection) if who == ALL else last_of(connection, who)
    told = NOTHING
    if entry is not None:
        told = entry.overall_spent if who == ALL else entry.spent
    if row is None:
        if told != NOTHING:
            raise tampered("a total is missing")
        return None
    epsilon, delta, cap_epsilon, cap_delta = cast("tuple[int, int, int, int]", row)
    if Amount(epsilon, delta) != told:
        raise tampered("a total is not what the entries say")
    return Standing(told, Amount(cap_epsilon, cap_delta))


def append(
    connection: apsw.Connection,
    kind: Kind,
    *,
    who: str = ALL,
    key: str = "",
    charge: Amount = NOTHING,
    overall_charge: Amount = NOTHING,
    loss: str = "",
    claim: int = 0,
    answer_digest: str = "",
    note: str = "",
) -> Entry:
    """Write the next entry, and its charges into the totals."""
    before, own = last(connection), last_of(connection, who)
    spent = charge if own is None else own.spent + charge
    overall_spent = overall_charge if before is None else before.overall_spent + overall_charge
    entry = seal(
        Entry(
            sequence=1 if before is None else before.sequence + 1,
            time=datetime.now(UTC).isoformat(timespec="microseconds"),
            kind=kind,
            who=who,
            key=key,
            epsilon=charge.epsilon,
            delta=charge.delta,
            overall_epsilon=overall_charge.epsilon,
            overall_delta=overall_charge.delta,
            spent_epsilon=spent.epsilon,
            spent_delta=spent.delta,
            overall_spent_epsilon=overall_spent.epsilon,
            overall_spent_delta=overall_spent.delta,
            loss=loss,
            claim=claim,
            answer_digest=answer_digest,
            note=note,
            previous=GENESIS if before is None else before.hash,
        )
    )
    connection.execute(_INSERT, values(entry))
    connection.execute("UPDATE head SET sequence = ?, hash = ?", (entry.sequence, entry.hash))
    _add(connection, who, charge)
    _add(connection, ALL, overall_charge)
    return entry


def _add(connection: apsw.Connection, who: str, charge: Amount) -> None:
    if charge != NOTHING:
        connection.execute(
            "UPDATE totals SET epsilon = epsilon + ?, delta = delta + ? WHERE who = ?",
            (charge.epsilon, charge.delta, who),
        )


def record_limits(connection: apsw.Connection, limits: Limits) -> None:
    """Write the caps down where they differ from those written last. Whoever is no longer named has a cap of zero."""
    recorded = last_of(connection, ALL)
    note = limits.encode()
    if recorded is not None and recorded.note == note:
        return
    connection.execute("UPDATE totals SET cap_epsilon = 0, cap_delta = 0")
    for who, cap in [(ALL, limits.overall), *limits.analysts.items()]:
        connection.execute(
            "INSERT INTO totals VALUES (?, 0, 0, ?, ?) ON CONFLICT (who) DO UPDATE"
            " SET cap_epsilon = excluded.cap_epsilon, cap_delta = excluded.cap_delta",
            (who, cap.epsilon, cap.delta),
        )
    append(connection, Kind.OPEN, note=note)


def is_paid(connection: apsw.Connection, who: str, key: str, loss: str) -> bool:
    """Whether the analyst was ever charged for this question. The first entry found is a charge."""
    row = connection.execute(
        "SELECT 1 FROM entries WHERE key = ? AND who = ? AND loss = ? AND kind IN ('reserve', 'repeat') LIMIT 1",
        (key, who, loss),
    ).fetchone()
    return row is not None


def settlement(connection: apsw.Connection, claim: int) -> Entry | None:
    """The COMMIT or FAIL of a claim."""
    return _entry(connection.execute(f"{_SELECT} WHERE claim = ? AND claim > 0", (claim,)).fetchone())


def stored_answer(connection: apsw.Connection, key: str, loss: str) -> bytes | None:
    """The stored answer, after checking it against the digest in the chain."""
    row = connection.execute(
        "SELECT answer, answer_digest FROM answers LEFT JOIN entries ON sequence = entry"
        " WHERE answers.key = ? AND answers.loss = ?",
        (key, loss),
    ).fetchone()
    if row is None:
        return None
    answer, told = cast("tuple[bytes, str | None]", row)
    if answer_hash(answer) != told:
        raise tampered("a stored answer was altered")
    return answer


def store_answer(connection: apsw.Connection, entry: Entry, loss: str, answer: bytes) -> None:
    """Keep the answer of a COMMIT entry."""
    connection.execute("INSERT INTO answers VALUES (?, ?, ?, ?)", (entry.sequence, entry.key, loss, answer))


def answer_hash(answer: bytes) -> str:
    """The digest by which the chain knows an answer."""
    return hashlib.sha256(answer).hexdigest()


def _entry(row: tuple[Any, ...] | None) -> Entry | None:
    if row is None:
        return None
    try:
        return from_values(row)
    except ValueError as error:
        raise tampered("an entry cannot be read") from error
