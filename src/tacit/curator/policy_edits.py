"""What an edit of the policy makes cost again. No data is touched."""

from __future__ import annotations

from collections.abc import Iterator

from tacit.ledger.reader import LedgerReader
from tacit.policy.check import PolicyAdvice
from tacit.policy.model import Policy


def list_edit_remarks(policy: Policy, ledger: LedgerReader) -> Iterator[PolicyAdvice]:
    """A remark where questions mean something else than under the policy with which the ledger was opened last.

    The digest of the policy is part of every question's key, so that a stored answer is given again for free exactly as
    long as the digest is the same. A raised epoch is another question on purpose, and is said as such.
    """
    terms = ledger.terms()
    if terms is None or terms.source.policy in {"", policy.digest}:
        return
    if policy.epoch > terms.source.epoch:
        text = f"is {policy.epoch}, and was {terms.source.epoch}: every question that was paid for costs again"
        yield PolicyAdvice("data.epoch", f"{text}, because it is about other data")
        return
    text = (
        "questions mean something else than when the ledger was opened last (a table, column, bound, key, cap, unit, "
        "neighbors or delta_per_question was edited), so every question that was paid for costs again; take the edit "
        "back to keep those answers free, or make all such edits together, best with a new epoch"
    )
    yield PolicyAdvice("tables", text)
