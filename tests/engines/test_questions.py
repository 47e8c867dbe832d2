"""Whole questions, the noise set aside: as plain SQL where no bound bites, as the reference where bounds do."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.support.bits import Ones
from tests.support.counts import FULL
from tests.support.policies import caps, policy_of

from tacit.analyst import Analyst
from tacit.answers.answer import Answer
from tacit.answers.columns import IntervalKind
from tacit.curator.curator import Curator
from tacit.curator.resources import budget_limits
from tacit.curator.tables import table_schemas
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.reference import ReferenceEngine
from tacit.ledger.ledger import Ledger
from tacit.policy.load import load

pytestmark = pytest.mark.slow

WARDS = ["A", "B", "C", "Ostflügel", "it's", 'a "quoted" one', "empty"]
DAYS = [datetime.date(2025, 1, day) for day in range(1, 8)]
ODD_TABLE = 'odd "t"; -- table'
ODD_COLUMN = "x'; DROP TABLE visits; --"
ODD_KEY = 'k"0"'
ODD_VALUES = ["'; DROP TABLE visits; --", '"', "/* */", "\\'", "%s {0} $1 ?", "line\nbreak"]

Rows = list[dict[str, Any]]

# The declared columns of the two tables that most questions are about.
VISITS: dict[str, dict[str, Any]] = {
    "patient": {"type": "int"},
    "ward": {"type": "text", "values": WARDS},
    "sex": {"type": "text", "values": ["f", "m"]},
    "grade": {"type": "int", "lower": 1, "upper": 5, "values": [1, 2, 3, 4, 5]},
    "day": {"type": "date", "values": DAYS},
    "admitted": {"type": "date"},
    "urgent": {"type": "bool"},
    "age": {"type": "int", "lower": 0, "upper": 120},
    "stay": {"type": "int"},
    "cost": {"type": "float", "lower": 0, "upper": 5000, "step": 0.01},
    "score": {"type": "float", "lower": -10, "upper": 10, "step": 0.5},
    "pulse": {"type": "float"},
    "big": {"type": "int", "lower": -(2**62), "upper": 2**62},
    "note": {"type": "text"},
    "Group": {"type": "text", "values": ["x", "y"]},
}
ODD: dict[str, dict[str, Any]] = {
    ODD_COLUMN: {"type": "int", "lower": 0, "upper": 9},
    ODD_KEY: {"type": "text", "values": ODD_VALUES},
    # names that the generated SQL uses for its own columns
    "k0": {"type": "text", "values": ["u", "v"]},
    "k1": {"type": "int", "lower": 0, "upper": 3, "values": [0, 1, 2, 3]},
    "a0": {"type": "int", "lower": 0, "upper": 100},
    "a1": {"type": "int", "lower": 0, "upper": 100},
    "unit": {"type": "int", "lower": 0, "upper": 50},
    "row_rank": {"type": "int", "lower": 0, "upper": 100},
    "group_rank": {"type": "int", "lower": 0, "upper": 100},
}
TYPES = {"int": pa.int64(), "float": pa.float64(), "text": pa.string(), "bool": pa.bool_(), "date": pa.date32()}


def columns_of(table: str) -> dict[str, dict[str, Any]]:
    return ODD if table == ODD_TABLE else VISITS


def policy_for(neighbors: str, groups: int, rows: int) -> dict[str, Any]:
    """Three tables: visits, whose unit is the patient; people, where each row is one; and one of odd names."""
    people = {name: column for name, column in VISITS.items() if name != "patient"}
    tables = {
        "visits": {"unit": "patient", **caps(groups, rows), "columns": VISITS},
        "people": {"unit": "row", "columns": people},
        ODD_TABLE: {"unit": "who's", **caps(groups, rows), "columns": ODD},
    }
    return policy_of(tables, neighbors=neighbors)


def clean_row(rng: random.Random, patient: int) -> dict[str, Any]:
    """Within every bound and list; arguments may be NULL, keys may not."""

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.08 else value

    return {
        "patient": patient,
        "ward": rng.choice(WARDS[:-1]),
        "sex": rng.choice(["f", "m"]),
        "grade": rng.randint(1, 5),
        "day": rng.choice(DAYS),
        "admitted": maybe(datetime.date(2024, 1, 1) + datetime.timedelta(days=rng.randint(0, 500))),
        "urgent": rng.random() < 0.3,
        "age": maybe(rng.choice([0, 120, rng.randint(0, 120), rng.randint(20, 60)])),
        "stay": maybe(rng.randint(0, 40)),
        "cost": maybe(rng.randint(0, 500_000) / 100),
        "score": maybe(rng.randint(-20, 20) / 2),
        "pulse": maybe(rng.uniform(40, 180)),
        "big": maybe(rng.randint(-(2**40), 2**40)),
        "note": maybe(rng.choice(["ok", "it's", 'say "hi"', "naïve", "日本", "", "a;b--c", "%_"])),
        "Group": rng.choice(["x", "y"]),
    }


def dirty_row(rng: random.Random, patient: int | None) -> dict[str, Any]:
    """Now and then outside a bound or a list, NULL, NaN or infinite."""
    row = clean_row(rng, patient or 0)
    row["patient"] = patient
    odd: dict[str, list[Any]] = {
        "ward": [None, "Z", "a", "A ", ""],
        "sex": [None, "x", "F"],
        "grade": [None, 0, 6, -(2**63)],
        "day": [None, datetime.date(1999, 12, 31)],
        "urgent": [None],
        "age": [None, -1, 121, 2**63 - 1, -(2**63)],
        "stay": [None, 2**63 - 1, -(2**63)],
        "cost": [None, math.nan, math.inf, -math.inf, -0.01, 5000.01, 12.345, -0.0, 1e300, 5e-324],
        "score": [None, math.nan, math.inf, -math.inf, 10.3, -10.25, 0.25, -0.25],
        "pulse": [None, math.nan, math.inf, -math.inf, 0.0],
        "big": [None, 2**62, -(2**62), 2**62 + 1, 2**63 - 1, -(2**63), 2**53 + 1],
        "Group": [None, "z"],
    }
    for name, values in odd.items():
        if rng.random() < 0.2:
            row[name] = rng.choice(values)
    return row


def odd_row(rng: random.Random, dirty: bool) -> dict[str, Any]:
    row = {name: rng.randint(int(c["lower"]), int(c["upper"])) for name, c in ODD.items() if "lower" in c}
    row |= {ODD_KEY: rng.choice(ODD_VALUES), "k0": rng.choice(["u", "v"]), "who's": f"it's {rng.randint(1, 60)}"}
    if dirty and rng.random() < 0.2:
        row |= {rng.choice([*ODD, "who's"]): None}
    return row


def clean_rows() -> dict[str, Rows]:
    rng = random.Random(20250101)
    visits = [clean_row(rng, rng.randint(1, 150)) for _ in range(900)]
    people = [{k: v for k, v in clean_row(rng, 0).items() if k != "patient"} for _ in range(500)]
    return {"visits": visits, "people": people, ODD_TABLE: [odd_row(rng, dirty=False) for _ in range(200)]}


def dirty_rows() -> dict[str, Rows]:
    """Units of one row and of many, rows that repeat others, and rows without a unit."""
    rng = random.Random(20250102)
    visits = [dirty_row(rng, None if rng.random() < 0.03 else rng.randint(1, 90)) for _ in range(400)]
    visits += [dirty_row(rng, rng.choice([1000, 1001])) for _ in range(150)]
    visits += [dict(row) for row in rng.choices(visits, k=50)]
    people = [{k: v for k, v in dirty_row(rng, 0).items() if k != "patient"} for _ in range(300)]
    return {"visits": visits, "people": people, ODD_TABLE: [odd_row(rng, dirty=True) for _ in range(150)]}


def kinds_of(table: str) -> dict[str, str]:
    """The type of each column that is stored."""
    kinds = {name: str(column["type"]) for name, column in columns_of(table).items()}
    if table == ODD_TABLE:
        kinds["who's"] = "text"
    if table == "people":
        kinds.pop("patient")
    return kinds


def arrow_of(table: str, rows: Rows) -> pa.Table:
    kinds = kinds_of(table)
    return pa.table({name: pa.array([row[name] for row in rows], TYPES[kind]) for name, kind in kinds.items()})


@dataclass(frozen=True)
class Question:
    """A question of the files under queries/.

    `exact` is false where a value lies on no declared grid (a name that begins with ~), `standard` where plain SQL says
    infinity and a private answer NULL (a name that begins with !).
    """

    name: str
    sql: str

    @property
    def exact(self) -> bool:
        return ": ~" not in self.name

    @property
    def standard(self) -> bool:
        return ": !" not in self.name


def questions() -> list[Question]:
    """All of them. A comment line names the question that follows."""
    found = []
    for file in sorted((Path(__file__).parent / "queries").glob("*.sql")):
        for part in file.read_text(encoding="utf-8").split("\n\n"):
            title, _, sql = part.strip().partition("\n")
            assert title.startswith("-- "), part
            found.append(Question(f"{file.stem}: {title.removeprefix('-- ')}", sql.strip().removesuffix(";")))
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "asked" in metafunc.fixturenames:
        every, ways, one_in = questions(), 1, 1
        if not FULL:  # each way of asking has questions of its own
            ways, one_in = (len(SETTINGS), 6) if "setting" in metafunc.fixturenames else (len(NEIGHBORS), 2)
        asked = [every[place : place + ways] for place in range(0, len(every), one_in)]
        metafunc.parametrize("asked", asked, ids=[some[0].name for some in asked])


NEIGHBORS = ["add-remove", "replace"]


@pytest.fixture(scope="session", params=NEIGHBORS)
def neighbors(request: pytest.FixtureRequest) -> str:
    """What neighboring data sets are."""
    return str(request.param)


@pytest.fixture(scope="session")
def unbounded(neighbors: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Analyst]:
    """Clean data, caps so large that nothing is left out, no noise."""
    policy = load(policy_for(neighbors, groups=10_000, rows=1_000))
    engine = DuckDBEngine(
        table_schemas(policy), None, {name: arrow_of(name, rows) for name, rows in clean_rows().items()}
    )
    ledger = Ledger(tmp_path_factory.mktemp("unbounded") / "ledger", budget_limits(policy))
    with Curator(policy, engine, ledger, Ones()) as curator:
        yield curator.analyst("ada")


@pytest.fixture(scope="session")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    """The same clean data in a DuckDB that knows nothing of privacy."""
    with duckdb.connect(":memory:") as connection:
        for name, rows in clean_rows().items():
            connection.register("handed", arrow_of(name, rows))
            quoted = name.replace('"', '""')
            connection.execute(f'CREATE TABLE "{quoted}" AS SELECT * FROM handed')
            connection.unregister("handed")
        yield connection


CAPS = {"k2r1": ("add-remove", 2, 1), "k1r3": ("replace", 1, 3)}


SETTINGS = ["duckdb-k2r1", "duckdb-k1r3", "postgres-k2r1"]
if FULL:
    SETTINGS += ["postgres-k1r3", "spark-k2r1"]


@pytest.fixture(scope="session", params=SETTINGS)
def setting(request: pytest.FixtureRequest) -> str:
    """An engine, and caps."""
    return str(request.param)


@pytest.fixture(scope="session")
def both(setting: str, tmp_path_factory: pytest.TempPathFactory, opened: Any) -> Iterator[tuple[Analyst, Analyst]]:
    """Dirty data and small caps, no noise: an engine, and the reference."""
    kind, _, caps = setting.partition("-")
    policy = load(policy_for(*CAPS[caps]))
    rows = dirty_rows()
    folder = tmp_path_factory.mktemp("both")
    engine = opened(kind, {name: (kinds_of(name), some) for name, some in rows.items()}, table_schemas(policy))
    with (
        Curator(policy, engine, Ledger(folder / kind, budget_limits(policy)), Ones()) as one,
        Curator(policy, ReferenceEngine(rows), Ledger(folder / "reference", budget_limits(policy)), Ones()) as other,
    ):
        yield one.analyst("ada"), other.analyst("ada")


def close(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def is_empty(answer: Answer, row: tuple[Any, ...]) -> bool:
    """Whether this is what a declared group without rows looks like: counts and sums are 0, means NULL."""
    return all(
        value in (0, None) for value, h in zip(row, answer.headings, strict=True) if h.bars is IntervalKind.EXACT
    )


def test_there_are_enough_questions():
    assert len({question.sql for question in questions()}) == len(questions()) >= 60


def test_plain_sql_where_no_bound_bites(asked, neighbors, unbounded, plain):
    question = asked[NEIGHBORS.index(neighbors) % len(asked)]
    answer = unbounded.ask(question.sql, epsilon=1)
    if not question.standard:
        assert [tuple(row.values()) for row in answer] == [(None, 900)]  # 900/0
        return
    expected = plain.sql(question.sql).fetchall()
    rows = [tuple(row.values()) for row in answer]
    # Off the declared grid a value is rounded to a default one: a millionth of the bound, for each row.
    alike = close if question.exact else lambda a, b: close(a, b) or math.isclose(a, b, rel_tol=1e-4)
    matched = []
    left = list(enumerate(rows))
    for wanted in expected:
        found = next((n for n, row in left if all(map(alike, row, wanted))), None)
        assert found is not None, (wanted, rows)
        left = [(n, row) for n, row in left if n != found]
        matched.append(found)
    assert all(is_empty(answer, row) for _, row in left), left
    if "ORDER BY" in question.sql.upper():
        assert matched == sorted(matched)


def test_the_reference_where_bounds_bite(asked, setting, both):
    question = asked[SETTINGS.index(setting) % len(asked)]
    engine, reference = both
    one, other = engine.ask(question.sql, epsilon=1), reference.ask(question.sql, epsilon=1)
    assert one.cells() == other.cells()
    assert one.headings == other.headings


def test_bounds_do_bite(both, unbounded):
    # 600 rows over some 92 patients, two of them with 75 each: k r = 2 or 3 rows are kept of each.
    engine, _ = both
    count = engine.ask("SELECT COUNT(*) FROM visits WHERE age IS NOT NULL", epsilon=1).value
    assert 0 < count <= 92 * 3
    assert unbounded.ask("SELECT COUNT(*) FROM visits", epsilon=1).value == 900


def test_questions_at_once(both):
    engine, reference = both
    few = [question.sql for question in questions() if question.name.startswith("groups")][: 12 if FULL else 6]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda sql: engine.ask(sql, epsilon=0.5).cells(), few))
    assert found == [reference.ask(sql, epsilon=0.5).cells() for sql in few]
