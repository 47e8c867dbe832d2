"""The ledger in one SQLite file: reserve, then touch.

>>> import tempfile
>>> from tacit.privacy.loss import LaplaceNoise
>>> one = Amount.cap(Fraction(1), Fraction(0))
>>> folder = tempfile.TemporaryDirectory()
>>> ledger = Ledger(Path(folder.name) / "clinic.ledger", Limits(one, {"ada": one}))
>>> question = LaplaceNoise(scale=Fraction(4), sensitivity=1)
>>> claim = ledger.reserve("ada", question, key="5eed")  # now it is charged, and the data may be touched
>>> ledger.commit(claim, b"41 patients").stored
b'41 patients'
>>> ledger.reserve("ada", question, key="5eed").stored  # a repeat is free
b'41 patients'
>>> ledger.standing("ada").remaining.epsilon_value
Fraction(3, 4)
>>> ledger.close(); folder.cleanup()
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import apsw

from tacit.accounting import pure
from tacit.accounting.filter import Amount, Standing
from tacit.accounting.receipt import Receipt
from tacit.errors import ParameterError
from tacit.ledger import rows, schema
from tacit.ledger.budget import Limits, admit, stricter
from tacit.ledger.entries import Claim, Entry, Kind
from tacit.ledger.file import File
from tacit.ledger.history import History, unknown
from tacit.privacy.loss import Loss, encode


class Ledger(History):
    """Charges questions against caps, so that what analysts learn together costs at most `limits.overall`.

    **Theorem.** Let an answer be shown only after `reserve` returned for it. Then, whatever threads, processes, kills
    and power cuts happen, the prices of the distinct answers shown to an analyst add up to at most the cap in force at
    the last charge, and the prices of all passes over the data to at most the overall cap. Proof: a charge is on disk
    before `reserve` returns, transactions happen one after the other, each charge is admitted by the filters on the
    sums it finds, and sums never shrink.

    Caps are those of `limits`, or of the last opening by anyone where these are stricter: a cap that the owner lowers
    binds processes that already run, and one that the owner raises binds those opened afterwards.
    """

    def __init__(self, path: Path, limits: Limits, *, wait: float = 30.0) -> None:
        self.limits = limits
        self.file = File(path, wait=wait, writable=True)
        try:
            with self.file.write() as connection:
                if schema.is_blank(connection):
                    schema.create(connection)
                _check(connection)
                rows.record_limits(connection, limits)
        except BaseException:
            self.file.close()
            raise

    def reserve(self, who: str, loss: Loss, key: str) -> Claim:
        """Charge a question, durably, before its data is touched. A refusal writes nothing and costs nothing.

        The same question is the same key and the same loss. Where its answer is stored, the claim carries it: at no
        cost to an analyst who was charged for it before, else at its price to their own cap only.
        """
        if who not in self.limits.analysts:
            raise unknown(who)
        text, price = encode(loss), _price(loss)
        with self.file.write() as connection:
            stored = rows.stored_answer(connection, key, text)
            own, shared = self._standings(connection, who)
            if stored is None:
                admit(price, who, own, shared)
                kind, charge, overall_charge = Kind.RESERVE, price, price
            elif rows.is_paid(connection, who, key, text):
                kind, charge, overall_charge = Kind.REPEAT, Amount.zero(), Amount.zero()
            else:
                admit(price, who, own, None)
                kind, charge, overall_charge = Kind.REPEAT, price, Amount.zero()
            entry = rows.append(
                connection, kind, who=who, key=key, charge=charge, overall_charge=overall_charge, loss=text
            )
        receipt = Receipt(
            entry=entry.sequence,
            time=entry.time,
            who=who,
            key=key,
            charged=charge,
            price=price,
            repeat=kind is Kind.REPEAT,
            analyst=Standing(entry.spent, own.cap),
            overall=Standing(entry.overall_spent, shared.cap),
            head=entry.hash,
        )
        return Claim(entry.sequence, who, key, stored, receipt)

    def commit(self, claim: Claim, answer: bytes) -> Claim:
        """Store the answer of a claim, durably, before it is shown. What the returned claim holds is what to show.

        The first writer wins: where the same question was answered meanwhile, that answer is returned, not this one.
        """
        if claim.stored is not None:
            return claim
        with self.file.write() as connection:
            reserved = _reserved(connection, claim)
            stored = rows.stored_answer(connection, reserved.key, reserved.loss)
            entry = rows.settlement(connection, claim.entry)
            if entry is None:
                shown = answer if stored is None else stored
                entry = rows.append(
                    connection,
                    Kind.COMMIT,
                    who=claim.who,
                    key=claim.key,
                    claim=claim.entry,
                    answer_digest=rows.answer_hash(shown),
                )
                if stored is None:
                    rows.store_answer(connection, entry, reserved.loss, answer)
            elif entry.kind is not Kind.COMMIT:
                raise ParameterError("claim", "it has failed already", fix="ask the question again")
            elif stored is None:
                raise rows.tampered("a stored answer is missing")
            else:
                shown = stored
        return replace(claim, stored=shown, receipt=replace(claim.receipt, head=entry.hash))

    def fail(self, claim: Claim) -> None:
        """Write down that no answer came of a claim. The charge stays: a refund that depends on data is a leak."""
        if claim.stored is not None:
            return
        with self.file.write() as connection:
            _reserved(connection, claim)
            if rows.settlement(connection, claim.entry) is None:
                rows.append(connection, Kind.FAIL, who=claim.who, key=claim.key, claim=claim.entry)

    def _standings(self, connection: apsw.Connection, who: str) -> tuple[Standing, Standing]:
        """The analyst's standing and everyone's, with the caps that bind."""
        own, shared = rows.standing(connection, who), rows.standing(connection, rows.ALL)
        if own is None or shared is None:
            raise rows.tampered("a total is missing")
        return self._guard(own, who), self._guard(shared, rows.ALL)

    def _guard(self, found: Standing, who: str) -> Standing:
        """The stricter of the cap recorded last and the one this ledger was opened with."""
        cap = self.limits.overall if who == rows.ALL else self.limits.analysts.get(who, Amount.zero())
        return Standing(found.spent, stricter(found.cap, cap))


def _price(loss: Loss) -> Amount:
    price = Amount.charge(pure.epsilon(loss), Fraction(0))
    if price.epsilon < 0:
        raise ParameterError("loss", "its epsilon is below zero", fix="a scale and a sensitivity are never negative")
    return price


def _reserved(connection: apsw.Connection, claim: Claim) -> Entry:
    """The RESERVE entry that a claim is for."""
    entry = rows.entry_at(connection, claim.entry)
    if entry is None or (entry.kind, entry.who, entry.key) != (Kind.RESERVE, claim.who, claim.key):
        raise ParameterError("claim", "it is not from this ledger", fix="commit what reserve returned")
    return entry


def _check(connection: apsw.Connection) -> None:
    """The quick look at every opening, whose cost does not grow with the number of entries."""
    if not schema.is_whole(connection):
        raise rows.tampered("the tables or their locks were altered")
    rows.last(connection)
    for (who,) in connection.execute("SELECT who FROM totals").fetchall():
        rows.standing(connection, str(who))
