"""The digest of a frame: of its values, however they are stored and in whichever order the rows come."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from tacit.engines.base import TableSchema
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.ingest import digest_source
from tacit.engines.source_digest import digest_frame
from tacit.query.types import Type

NAMES = [f"n{number}" for number in range(256)]
TABLE = pa.table({"a": [*NAMES, None], "b": list(range(257))})


def stored(column: pa.Array) -> pa.Table:
    return TABLE.set_column(0, "a", column)


CODES = pa.array([*range(256), None], pa.uint8())
SAME = {
    "a dictionary": stored(TABLE["a"].dictionary_encode()),
    "a dictionary whose numbers are all taken": stored(pa.DictionaryArray.from_arrays(CODES, pa.array(NAMES))),
    "a dictionary that holds NULL": stored(
        pa.DictionaryArray.from_arrays(pa.array(range(257), pa.int16()), pa.array([*NAMES, None]))
    ),
    "large texts": stored(TABLE["a"].cast(pa.large_string())),
    "views of texts": stored(TABLE["a"].cast(pa.string_view())),
    "short integers": TABLE.set_column(1, "b", TABLE["b"].cast(pa.int16())),
    "slices": pa.concat_tables([TABLE.slice(200), TABLE.slice(0, 200)]),
    "slices of dictionaries": pa.concat_tables(
        [stored(TABLE["a"].dictionary_encode()).slice(200), stored(TABLE["a"].dictionary_encode()).slice(0, 200)]
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_values_have_the_same_digest(name):
    assert digest_frame(SAME[name]) == digest_frame(TABLE)


def test_other_values_have_another_digest():
    changed = [
        TABLE.slice(1),
        pa.concat_tables([TABLE, TABLE.slice(0, 1)]),
        TABLE.rename_columns(["a", "c"]),
        stored(pa.array([*NAMES[1:], NAMES[0], None])),  # the same values in other rows
        stored(pa.array([*NAMES, ""])),
        TABLE.set_column(1, "b", pa.array([*range(256), 0])),
    ]
    digests = [digest_frame(table) for table in [TABLE, *changed]]
    assert len(set(digests)) == len(digests)


def test_a_categorical_column_of_polars_is_digested():
    polars = pytest.importorskip("polars")
    frame = polars.from_arrow(TABLE).with_columns(polars.col("a").cast(polars.Categorical))
    assert digest_frame(pa.table(frame)) == digest_frame(TABLE)


@pytest.mark.slow
def test_a_view_is_known_by_its_rows(tmp_path):
    """It may read another file, or draw random numbers: then other data comes of the same file."""
    (tmp_path / "rows.csv").write_text("who,x\n1,2\n3,4\n")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as made:
        made.execute(f"CREATE VIEW seen AS SELECT * FROM read_csv('{tmp_path}/rows.csv')")
        made.execute("CREATE VIEW drawn AS SELECT i AS who, CAST(1e9 * random() AS BIGINT) AS x FROM range(9) AS r(i)")
    shapes = [TableSchema(name, (("x", Type.INT),), "who") for name in ("seen", "drawn")]

    def digests() -> dict[str, str]:
        engine = DuckDBEngine(shapes, tmp_path / "t.duckdb")
        found = dict(engine.source_digests())
        engine.close()
        return found

    first, second = digests(), digests()
    assert first["seen"] == second["seen"] == digest_source(shapes, tmp_path / "t.duckdb")["seen"]
    assert first["drawn"] != second["drawn"]
    (tmp_path / "rows.csv").write_text("who,x\n1,2\n3,5\n")
    assert digests()["seen"] != first["seen"]
