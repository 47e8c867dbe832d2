"""What a policy that is not written yet would answer, for the owner who holds the data.

**Rule.** Nothing is charged to the ledger of the policy: the question goes to a curator of its own, with a ledger in a
folder that is removed after it. Its answer is therefore for the eyes of the owner alone. Anybody else would learn from
it what no budget counts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tacit.answers.answer import Answer
from tacit.arithmetic import Number
from tacit.curator.curator import open_policy
from tacit.policy.model import LedgerLocation, Policy


def preview_answer(policy: Policy, data: Mapping[str, object], sql: str, epsilon: Number) -> Answer:
    """The answer that the first analyst of a policy would get for a first question about this data."""
    with tempfile.TemporaryDirectory(prefix="tacit-preview-") as folder:
        place = Path(folder)
        books = LedgerLocation(place / "preview.ledger", place / "preview.key", place / "preview.witness")
        with open_policy(replace(policy, engine="duckdb", source=None, copy=None, books=books), data) as curator:
            return curator.analyst(policy.analysts[0].name).ask(sql, epsilon=epsilon)
