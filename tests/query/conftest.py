"""One fixed policy for every question of this folder, and a database that holds more than the policy lists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

if TYPE_CHECKING:  # reading a question needs no other room, so its tests import none
    from tacit.curator.curator import Curator
    from tacit.policy.model import Policy


def clinic(folder: Path) -> dict[str, Any]:
    """Columns of every type, some with bounds or keys and some without; `beds` has a unit of one row."""
    return {
        "data": {"source": str(folder / "clinic.duckdb"), "epoch": 1},
        "ledger": {"store": str(folder / "clinic.ledger")},
        "privacy": {"neighbors": "add-remove", "epsilon": 10},
        "tables": {
            "visits": {
                "unit": "patient_id",
                "max_groups": 2,
                "max_rows_per_group": 3,
                "columns": {
                    "age": {"type": "int", "lower": 0, "upper": 110},
                    "prior": {"type": "int"},
                    "points": {"type": "int", "lower": 0, "upper": 10**15},
                    "room": {"type": "int", "values": list(range(101, 301))},
                    "cost": {"type": "float", "lower": 0, "upper": 5000, "step": 0.01},
                    "balance": {"type": "float", "lower": -1000, "upper": 1000},
                    "pulse": {"type": "float"},
                    "ward": {"type": "text", "values": ["A", "B", "C"]},
                    "shift": {"type": "text", "values": [f"s{n:02}" for n in range(60)]},
                    "diagnosis": {"type": "text"},
                    "smoker": {"type": "bool"},
                    "visited": {"type": "date"},
                    "quarter": {"type": "date", "values": ["2025-01-01", "2025-04-01", "2025-07-01", "2025-10-01"]},
                },
            },
            "beds": {
                "unit": "row",
                "columns": {
                    "ward": {"type": "text", "values": ["A", "B", "C"]},
                    "rate": {"type": "float", "lower": 0, "upper": 1, "step": 0.01},
                },
            },
        },
        "analysts": {"ada": {"epsilon": 5}},
    }


def fill(path: Path) -> None:
    """Ten visits of five patients, some beds, and what no analyst may name: `staff`, and the column `name`."""
    with duckdb.connect(str(path)) as connection:
        connection.execute("""
            CREATE TABLE visits AS SELECT i % 5 AS patient_id, 'n' || i AS name, (20 + 5 * i)::INTEGER AS age,
                i::BIGINT AS prior, (i * 1000)::BIGINT AS points, (101 + i)::INTEGER AS room, 10.5 * i AS cost,
                (i - 5.0)::DOUBLE AS balance, (60 + i)::DOUBLE AS pulse, chr((65 + i % 3)::INTEGER) AS ward,
                's0' || (i % 4) AS shift, 'flu' AS diagnosis, i % 2 = 0 AS smoker,
                DATE '2025-01-01' + i::INTEGER AS visited, DATE '2025-01-01' AS quarter
            FROM range(10) t(i)""")
        connection.execute(
            "CREATE TABLE beds AS SELECT chr((65 + i % 3)::INTEGER) AS ward, i / 10 AS rate FROM range(9) t(i)"
        )
        connection.execute("CREATE TABLE staff AS SELECT 'Eve' AS name, 1 AS age")


@pytest.fixture(scope="session")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    from tacit.policy.load import load

    return load(clinic(tmp_path_factory.mktemp("policy")))


@pytest.fixture(scope="session")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Curator]:
    """The whole thing: data, ledger and noise."""
    from tacit.curator.curator import open as open_curator

    folder = tmp_path_factory.mktemp("clinic")
    fill(folder / "clinic.duckdb")
    with open_curator(clinic(folder)) as curator:
        yield curator


@pytest.fixture(scope="session")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Curator]:
    """The same with a budget that lasts, for questions that are answered."""
    from tacit.curator.curator import open as open_curator

    folder = tmp_path_factory.mktemp("rich")
    fill(folder / "clinic.duckdb")
    plenty = clinic(folder) | {"privacy": {"epsilon": 1000}, "analysts": {"ada": {"epsilon": 1000}}}
    with open_curator(plenty) as curator:
        yield curator
