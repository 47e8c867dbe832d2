"""A question that is interrupted while its noise is drawn: the noise of the next one is fresh."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.interrupts import at_every_point

from tacit.curator.curator import Curator
from tacit.curator.resources import budget_limits
from tacit.curator.tables import table_schemas
from tacit.engines.duckdb import DuckDBEngine
from tacit.ledger.ledger import Ledger
from tacit.policy.load import load
from tacit.sampling.bits import SystemBits, Words

LONE = 300
POLICY = {
    "privacy": {"epsilon": 1000, "delta": 0.01, "delta_per_question": 1e-6},
    "tables": {
        "t": {
            "unit": "who",
            "max_groups": 1,
            "max_rows_per_group": 1,
            "columns": {"name": {"type": "text"}, "x": {"type": "int", "lower": 0, "upper": 9}},
        }
    },
    "analysts": {"ada": {"epsilon": 1000, "delta": 0.01}},
}


class Recorded(SystemBits):
    """The curator's own source, and every word that it has given out; here no interrupt comes."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[int] = []
        self.refreshed = 0

    def words(self, count: int) -> Words:
        taken = super().words(count)
        self.given += taken.tolist()
        return taken

    def refresh(self) -> None:
        super().refresh()
        self.refreshed += 1


@pytest.fixture
def bits() -> Recorded:
    return Recorded()


@pytest.fixture
def curator(tmp_path, bits) -> Iterator[Curator]:
    """Many persons, each with a name that nobody else has."""
    rows = {"who": np.arange(LONE), "name": [f"person {i}" for i in range(LONE)], "x": np.zeros(LONE, dtype=np.int64)}
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table(rows), tmp_path / "data" / "t.parquet")
    policy = load(POLICY)
    ledger = Ledger(tmp_path / "ledger", budget_limits(policy))
    with Curator(policy, DuckDBEngine(table_schemas(policy), tmp_path / "data"), ledger, bits) as opened:
        yield opened


@pytest.mark.slow
def test_after_an_interrupt_at_any_line_of_a_draw_the_next_question_hides_everyone(curator, bits):
    # A lone name is listed with probability 1e-6, so three of 300 in one question with 300^3 / 6 * 1e-18 = 5e-12, and
    # in any of 60 questions with 3e-10.
    ada = curator.analyst("ada")
    numbers = iter(range(10**6))
    asked = 0

    def question():
        return ada.ask(f"SELECT name, COUNT(*) AS n FROM t WHERE x < {next(numbers) + 1} GROUP BY name", epsilon=1)

    question()
    for _ in at_every_point(question, lambda file: file.endswith("sampling/bits.py")):
        assert len(list(question())) <= 2
        asked += 1
    assert 20 <= asked <= 60
    # 40,000 words: 40000^2 / 2^65 = 4e-11.
    assert len(bits.given) >= LONE * asked
    assert all(bits.given)
    assert len(set(bits.given)) == len(bits.given)


def test_every_release_begins_with_a_refresh(curator, bits):
    ada = curator.analyst("ada")
    for number in range(3):
        ada.ask(f"SELECT COUNT(*) AS n FROM t WHERE x < {number + 1}", epsilon=1)
        ada.ask(f"SELECT COUNT(*) AS n FROM t WHERE x < {number + 1}", epsilon=1)  # a repeat: nothing is drawn
        assert bits.refreshed == number + 1
