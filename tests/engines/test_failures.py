"""A source under a curator: handed over at open, or broken afterwards, which fails alike whatever broke."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.bits import Ones
from tests.support.policies import caps, policy_of

import tacit
from tacit.curator.curator import Curator
from tacit.curator.resources import budget_limits
from tacit.curator.tables import table_schemas
from tacit.engines.duckdb import DuckDBEngine
from tacit.errors import Failed
from tacit.ledger.entries import EntryKind
from tacit.ledger.ledger import Ledger
from tacit.policy.load import load

pytestmark = pytest.mark.slow

COLUMNS: dict[str, Any] = {
    "ward": {"type": "text", "values": ["A", "B", "Ost, flügel"]},
    "age": {"type": "int", "lower": 0, "upper": 120},
    "cost": {"type": "float", "lower": 0, "upper": 100, "step": 0.5},
    "urgent": {"type": "bool"},
    "day": {"type": "date"},
}
DATA: dict[str, list[Any]] = {
    "patient": ["p1", "p2", "p3", "p4"],
    "ward": ["A", "A", "B", "Ost, flügel"],
    "age": [30, 40, None, 50],
    "cost": [1.5, None, 2.5, 3.0],
    "urgent": [True, False, None, True],
    "day": [datetime.date(2025, 1, 1), None, datetime.date(2025, 2, 1), datetime.date(2025, 3, 1)],
}
KINDS = [pa.string(), pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.date32()]
ARROW = pa.table({name: pa.array(values, kind) for (name, values), kind in zip(DATA.items(), KINDS, strict=True)})


def policy_with(source: Path | None = None, columns: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    table = {"unit": "patient", **caps(3, 5), "columns": columns or COLUMNS}
    policy = policy_of({"visits": table | more.pop("table", {})} | more.pop("tables", {}), epsilon=100)
    if source is not None:
        policy["data"] = {"source": str(source)}
    return policy | more


def test_tables_handed_to_open(framed, tmp_path):
    # Epsilon 99: the noise of a count has scale k r/epsilon = 15/99, so it is 0 but once in 730 draws.
    policy = policy_with(ledger={"store": str(tmp_path / "ledger")})
    with tacit.open(policy, data={"visits": framed(ARROW)}) as curator:
        answer = curator.analyst("ada").ask("SELECT COUNT(*) FROM visits", epsilon=99)
    assert abs(answer.value - 4) <= 10


@pytest.fixture
def parquet(tmp_path):
    """An analyst over a folder of two Parquet files, and the folder."""
    folder = tmp_path / "data"
    folder.mkdir()
    big = pa.concat_tables([ARROW] * 5000)
    pq.write_table(big, folder / "visits.parquet")
    pq.write_table(ARROW, folder / "stays.parquet")
    table = policy_with()["tables"]["visits"]
    policy = load(policy_with(folder, tables={"stays": table}))
    engine = DuckDBEngine(table_schemas(policy), policy.source)
    with Curator(policy, engine, Ledger(tmp_path / "ledger", budget_limits(policy)), Ones()) as curator:
        yield curator.analyst("ada"), folder


def delete(file: Path) -> None:
    file.unlink()


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def garble(file: Path) -> None:
    # The footer is gone too, or the reader would not notice.
    file.write_bytes(b"x" * file.stat().st_size)


def other_columns(file: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), file)


@pytest.mark.parametrize("harm", [delete, truncate, garble, other_columns])
def test_a_source_that_breaks_after_open_is_not_noticed(harm, parquet):
    analyst, folder = parquet
    harm(folder / "visits.parquet")
    # Questions read the copy that was made at open: of four people five rows each count.
    assert analyst.ask("SELECT COUNT(*) FROM visits", epsilon=2).value == 20
    assert analyst.ask("SELECT COUNT(*) FROM stays", epsilon=2).value == 4


def test_an_engine_that_breaks_after_the_charge(parquet):
    analyst, _ = parquet
    analyst._curator.engine._connection.execute("DROP TABLE copy.main.visits")
    with pytest.raises(Failed) as raised:
        analyst.ask("SELECT COUNT(*), SUM(age) FROM visits", epsilon=2)
    # The text is the same whatever went wrong, and nothing hangs on to the cause.
    assert str(raised.value) == str(Failed())
    assert raised.value.__cause__ is None and raised.value.__context__ is None
    entries = list(analyst._curator.ledger.entries())
    assert [entry.kind for entry in entries] == [EntryKind.OPEN, EntryKind.RESERVE, EntryKind.FAIL]
    assert entries[-1].claim == entries[-2].sequence
    # The charge stays: 100 - 2.
    assert analyst.budget.remaining == 98
