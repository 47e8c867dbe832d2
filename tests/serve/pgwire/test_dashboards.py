"""What BI tools ask for their charts, filters and datasets. The tools were not run: the statements are replayed.

They follow the public sources and documents of the tools, over the tables here. Each is answered, or refused with a fix
that works: the statement after `-- instead` has the fix in it, and is answered.
"""

from __future__ import annotations

import datetime
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.serve.pgwire.conftest import serve_folder

pytestmark = pytest.mark.slow

REPLAYED = sorted((Path(__file__).parent / "replayed").glob("*.sql"))
POLICY = """\
[data]
source = "data"
[ledger]
store = "clinic.ledger"
[privacy]
epsilon = 1000
[tables.visits]
unit = "patient_id"
max_groups = 2
max_rows_per_group = 3
[tables.visits.columns]
age = { type = "int", lower = 0, upper = 110 }
ward = { type = "text", values = ["Emergency", "Surgery"] }
visited = { type = "date", lower = 2025-01-01, upper = 2025-12-31 }
seen = { type = "timestamp", lower = 2025-01-01T00:00:00, upper = 2025-12-31T23:59:59 }
cost = { type = "float", lower = 0, upper = 1000, step = 0.01 }
insured = { type = "bool" }
[analysts.ada]
epsilon = 900
"""


def replayed():
    """Each statement with its tool and what is expected of it."""
    for path in REPLAYED:
        for part in path.read_text().split("\n;;\n"):
            lines = [line for line in part.strip().splitlines() if line]
            while len(lines) > 1 and lines[0].startswith("--") and lines[1].startswith("--"):
                del lines[0]  # what the file is
            if lines:
                expected, _, note = lines[0].removeprefix("-- ").partition(": ")
                text, _, instead = "\n".join(lines[1:]).partition("\n-- instead\n")
                yield pytest.param(expected, note, text, instead, id=f"{path.stem}-{text[:40]}")


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dashboards")
    rows = range(600)
    visits = {
        "patient_id": pa.array([i // 3 for i in rows], pa.int64()),
        "age": pa.array([20 + i % 60 for i in rows], pa.int64()),
        "ward": pa.array([["Emergency", "Surgery"][i % 2] for i in rows]),
        "visited": pa.array([datetime.date(2025, 1 + i % 12, 1) for i in rows]),
        "seen": pa.array([datetime.datetime(2025, 1 + i % 12, 1, 10, i % 60) for i in rows], pa.timestamp("us")),
        "cost": pa.array([float(i % 500) for i in rows]),
        "insured": pa.array([i % 4 != 0 for i in rows]),
    }
    (folder / "data").mkdir()
    pq.write_table(pa.table(visits), folder / "data" / "visits.parquet")
    with serve_folder(folder, POLICY, ["ada"]) as served:
        yield served


@pytest.fixture(scope="module")
def ada(clinic):
    with psycopg.connect(clinic.dsn(options="-c tacit.epsilon=0.5"), autocommit=True) as connection:
        yield connection


def run(connection, text):
    """The rows of the last result that has some, by the simple protocol, as tools that write values into the text."""
    cursor = psycopg.ClientCursor(connection)
    cursor.execute(text)
    found = []
    while True:
        found = cursor.fetchall() if cursor.description else found
        if not cursor.nextset():
            return found


@pytest.mark.parametrize(("expected", "note", "text", "instead"), list(replayed()))
def test_what_a_tool_asks_is_answered_or_refused_with_a_fix_that_works(clinic, ada, expected, note, text, instead):
    spent = clinic.spent()
    if expected.startswith("refused"):
        with pytest.raises(psycopg.Error) as error:
            run(ada, text)
        diagnosis = error.value.diag
        assert diagnosis.message_primary.startswith(f"refused [{expected.split()[1]}]: ")
        assert diagnosis.message_hint == note and diagnosis.message_primary.endswith(f"; fix: {note}")
        assert clinic.spent() == spent
        ada.execute("ROLLBACK")
        run(ada, instead)
        return
    rows = run(ada, text)
    if expected == "free":
        assert clinic.spent() == spent
    else:
        assert expected == "answered" and rows
        once = clinic.spent()
        assert run(ada, text) == rows and clinic.spent() == once


def test_every_kind_of_tool_is_replayed():
    assert [path.stem for path in REPLAYED] == ["grafana", "metabase", "powerbi", "superset", "tableau"]
    expected = [each.values[0].split()[0] for each in replayed()]
    assert {expected.count(kind) >= 5 for kind in ("answered", "free", "refused")} == {True} and len(expected) >= 35
