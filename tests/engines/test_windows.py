"""Questions about one unit's rows on every engine: they say what the reference says, also where bounds bite."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.curator.test_per_unit import COLUMNS, QUESTIONS, declare, rows_of
from tests.support.counts import FULL

from tacit.aggregates.registry import read_question as parse
from tacit.plan.bind_question import plan_for
from tacit.policy.load import load
from tacit.query.timestamps import to_microseconds

pytestmark = pytest.mark.slow

WITH_WINDOWS = [text for text in QUESTIONS if "OVER" in text]


def tables() -> dict[str, Any]:
    """The rows of a few customers, some of nobody, and of each customer some that are equal or tie."""
    rng, found = random.Random(7), rows_of(random.Random(7))
    for rows in found.values():
        for row in rows:
            if rng.random() < 0.1:
                row["customer"] = rng.choice([None, "c1", "c2"])
            if "day" in row and rng.random() < 0.3:
                row |= {"day": rows[0]["day"], "id": 1}
            if "happened" in row:
                row["happened"] = to_microseconds(row["happened"])
        rows.extend(rows[:9])
    kinds = {name: {"customer": "text"} | {n: c["type"] for n, c in COLUMNS[name].items()} for name in found}
    return {name: (kinds[name], rows) for name, rows in found.items()}


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("postgres", WITH_WINDOWS),
        ("spark", WITH_WINDOWS if FULL else WITH_WINDOWS[::14]),  # each takes Spark a while
    ],
)
def test_every_engine_says_what_the_reference_says(kind, texts, opened):
    policy, data = load(declare(2, 3, 4)), tables()
    engine, reference = opened(kind, data), opened("reference", data)
    try:
        for text in texts:
            exact = plan_for(parse(text), policy, 1).exact
            assert dict(engine.run(exact)) == dict(reference.run(exact)), text
    finally:
        engine.close()
