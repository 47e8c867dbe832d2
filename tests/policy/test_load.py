from __future__ import annotations

import datetime
import subprocess
import sys
import tomllib
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL

from tacit.errors import ErrorCode, PolicyError
from tacit.policy.load import load
from tacit.policy.model import (
    Column,
    DeclaredAnalyst,
    LedgerLocation,
    Policy,
    PrivacyBudget,
    Table,
    Type,
    UnitForeignKey,
)
from tacit.privacy.unit import Neighbors

HERE = Path(__file__).parent
CLINIC = HERE / "clinic.toml"
MISTAKES = sorted((HERE / "mistakes").glob("*.toml"))


def small(**changes: Any) -> dict[str, Any]:
    """The shortest policy, with some of its sections changed."""
    return {
        "privacy": {"epsilon": 1},
        "tables": {"visits": {"unit": "row", "columns": {"age": {"type": "int"}}}},
        "analysts": {"ada": {"epsilon": 1}},
    } | changes


def with_column(**column: Any) -> dict[str, Any]:
    return small(tables={"visits": {"unit": "row", "columns": {"x": column}}})


def beside(stem: Path) -> LedgerLocation:
    return LedgerLocation(*(stem.with_suffix(f".{name}") for name in ("ledger", "key", "witness")))


def only_column(policy: Policy) -> Column:
    return policy.tables[0].columns[0]


def test_the_clinic():
    visits = Table(
        "visits",
        "patient_id",
        (
            Column("age", Type.INT, Fraction(0), Fraction(110)),
            Column("cost", Type.FLOAT, Fraction(0), Fraction(5000), Fraction(1, 100)),
            Column("ward", Type.TEXT, values=("A", "B", "C")),
            Column("diagnosis", Type.TEXT),
            Column("smoker", Type.BOOL, values=(False, True)),
        ),
        4,
        3,
        "visits",  # the people of a table that names none
    )
    days = (datetime.date(2024, 12, 31), datetime.date(2025, 1, 1))
    staff = Table(
        "staff on call",
        "row",
        (Column("day", Type.DATE, values=days), Column("floor", Type.INT, values=(0, 1))),
        people="staff on call",
    )
    assert load(CLINIC) == Policy(
        source=HERE / "clinic.duckdb",
        epoch=2,
        books=LedgerLocation(
            HERE / "kept" / "clinic.ledger", HERE / "kept" / "clinic.key", Path("/elsewhere/clinic.witness")
        ),
        neighbors=Neighbors.ADD_REMOVE,
        budget=PrivacyBudget(Fraction(10), Fraction(1, 10**6)),
        delta_per_question=Fraction(1, 10**9),  # delta/1000
        tables=(visits, staff),
        analysts=(
            DeclaredAnalyst("ada", PrivacyBudget(Fraction(3), Fraction(1, 10**7)), monthly=True),
            DeclaredAnalyst("bo", PrivacyBudget(Fraction(1, 10), Fraction(0))),
        ),
    )


@pytest.mark.parametrize("parse", [float, Decimal, Fraction])
def test_a_dict_and_a_file_say_the_same(parse: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(HERE)
    entries = tomllib.loads(CLINIC.read_text(), parse_float=parse)
    assert load(entries) == load("clinic.toml") == load(str(CLINIC))
    assert load(entries).digest == load(CLINIC).digest


def test_what_is_today():
    assert load(small()).today is None
    day, moment = datetime.date(2025, 12, 31), datetime.datetime(2025, 12, 31, 18, 30)
    for entry, expected in ((day, day), ("2025-12-31", day), (moment, moment), ("2025-12-31T18:30", moment)):
        policy = load(small() | {"data": {"today": entry}})
        assert policy.today == expected and type(policy.today) is type(expected)
        assert policy.digest == load(small()).digest  # a question that names it holds it as a constant


def test_defaults_of_a_dict():
    policy = load(small())
    assert (policy.source, policy.books, policy.epoch) == (None, None, 1)
    assert policy.neighbors is Neighbors.ADD_REMOVE
    assert (policy.budget.delta, policy.delta_per_question) == (0, 0)
    assert (policy.tables[0].max_groups, policy.tables[0].max_rows_per_group) == (1, 1)


def test_a_cap_on_all_rows_is_part_of_what_answers_mean_where_it_is_declared():
    columns = {"a": {"type": "bool"}}
    caps = {"unit": "who", "max_groups": 2, "max_rows_per_group": 3, "columns": columns}
    policies = [load(small(tables={"t": {**caps, **more}})) for more in ({}, {"max_rows": 4}, {"max_rows": 5})]
    assert [policy.tables[0].max_rows for policy in policies] == [None, 4, 5]
    assert len({policy.digest for policy in policies}) == 3
    # a row is one row, and nothing else
    assert load(small(tables={"t": {"unit": "row", "max_rows": 1, "columns": columns}})).tables[0].max_rows is None


def test_the_ledger_of_a_file_lies_beside_it(tmp_path: Path):
    file = tmp_path / "clinic.toml"
    file.write_text(
        '[privacy]\r\nepsilon = 0.3\r\n[tables.t]\r\nunit = "row"\r\ncolumns.a.type = "bool"\r\n'
        "[analysts.ada]\r\nepsilon = 1",
        encoding="utf-8-sig",
        newline="",
    )
    assert load(file).books == beside(tmp_path / "clinic")
    assert load(file).budget.epsilon == Fraction(3, 10)


@pytest.mark.parametrize(
    ("store", "books"),
    [
        ("kept/a.ledger", ("kept/a.ledger", "kept/a.key", "kept/a.witness")),
        ("a.db", ("a.db", "a.db.key", "a.db.witness")),  # so that a.ledger beside it has a witness of its own
        ("postgresql://host/office", ("postgresql://host/office", "tacit.key", "tacit.witness")),
        ("postgresql://host/office#ward", ("postgresql://host/office#ward", "ward.key", "ward.witness")),
        ("postgres:///office?host=/run/pg", ("postgres:///office?host=/run/pg", "tacit.key", "tacit.witness")),
    ],
)
def test_the_key_and_the_witness_are_named_after_the_ledger(store: str, books: tuple[str, ...]):
    place, key, witness = books
    expected = LedgerLocation(place if "://" in place else Path.cwd() / place, Path.cwd() / key, Path.cwd() / witness)
    assert load(small(ledger={"store": store})).books == expected


def test_a_database_of_a_policy_file_has_its_key_beside_the_policy(tmp_path: Path):
    file = tmp_path / "clinic.toml"
    text = (HERE / "mistakes" / "store_url_without_database.toml").read_text()
    file.write_text(text.replace("ledgers.example", "ledgers.example/office"))
    books = load(file).books
    assert books is not None
    assert (books.key, books.witness) == (tmp_path / "clinic.key", tmp_path / "clinic.witness")


@pytest.mark.parametrize("name", ["key", "witness"])
def test_a_dict_without_a_store_has_nothing_for_a_key_or_a_witness(name: str):
    with pytest.raises(PolicyError, match=f"ledger.{name}: there is no ledger for it") as caught:
        load(small(ledger={name: "clinic.file"}))
    assert caught.value.fix == "name the store too"


def test_a_mistake_in_what_is_not_written_points_at_its_section(tmp_path: Path):
    file = tmp_path / "clinic.toml"
    text = (HERE / "mistakes" / "key_number.toml").read_text()
    file.write_text(text.replace("key = 7", 'key = "clinic.witness"'))  # where the witness would lie
    with pytest.raises(PolicyError, match=r"ledger\.witness: cannot be the same file as the key") as caught:
        load(file)
    assert caught.value.at is not None
    assert caught.value.at.excerpt == "[ledger]"


def test_where_the_ledger_lies_and_who_refreshes_do_not_change_what_an_answer_means():
    elsewhere = small(ledger={"store": "b.ledger"}, analysts={"ada": {"epsilon": 1, "refresh": "monthly"}})
    assert load(elsewhere).digest == load(small()).digest


def test_plain_values_from_values_of_subclasses():
    # The digest tags a key with its type, so a key must not keep the type of an enum.
    assert only_column(load(with_column(type=Type.TEXT, values=[Type.INT]))).values == ("int",)
    assert type(only_column(load(with_column(type="text", values=[Type.INT]))).values[0]) is str


def test_limits_are_inclusive():
    # 2^52 steps of 2^-10: an upper bound of 2^42
    assert only_column(load(with_column(type="float", lower=0, upper=2**42, step=2.0**-10))).step == Fraction(1, 1024)
    with pytest.raises(PolicyError, match="too fine"):
        load(with_column(type="float", lower=0, upper=2**42 + 1, step=2.0**-10))
    bounds = load(with_column(type="int", lower=-(2**63), upper=2**63 - 1))
    assert only_column(bounds).upper == 2**63 - 1
    assert load(with_column(type="float", lower=1.5, upper=1.5)).tables[0].columns[0].lower == Fraction(3, 2)
    assert load(small(privacy={"epsilon": 1000, "delta": 0.5, "delta_per_question": 0.5})).budget.epsilon == 1000
    assert len(only_column(load(with_column(type="int", values=list(range(10_000))))).values or ()) == 10_000
    with pytest.raises(PolicyError, match="not 10001 of them"):
        load(with_column(type="int", values=list(range(10_001))))
    assert load(small(tables={"t" * 128: small()["tables"]["visits"]})).tables[0].name == "t" * 128


def hospital() -> dict[str, Any]:
    """Stays and their items belong to the patients of visits; wards are public."""
    caps = {"max_groups": 2, "max_rows_per_group": 3}
    age = {"type": "int", "lower": 0, "upper": 110}
    return {
        "visits": {"unit": "patient_id", "people": "patients", **caps, "columns": {"age": age}},
        "stays": {"unit": "patient", "people": "patients", **caps, "columns": {"nights": {"type": "int"}}},
        "items": {"unit": {"through": "stay_id", "to": "stays.id"}, **caps, "columns": {"price": {"type": "int"}}},
        "parts": {"unit": {"through": "item_id", "to": "items.id"}, **caps, "columns": {"price": {"type": "int"}}},
        "wards": {"public": True, "columns": {"ward": {"type": "text", "unique": True}, "beds": age}},
    }


def test_a_table_may_reach_its_unit_through_others():
    policy = load(small(tables=hospital()))
    tables = {table.name: table for table in policy.tables}
    assert tables["items"].unit == UnitForeignKey("stay_id", "stays", "id")
    assert tables["parts"].unit == UnitForeignKey("item_id", "items", "id")
    # the people are those of the table at the end of the way: parts -> items -> stays
    assert [tables[name].people for name in ("visits", "stays", "items", "parts")] == ["patients"] * 4


def test_a_public_table_has_no_unit_and_may_have_unique_columns():
    wards = load(small(tables=hospital())).table("wards")
    assert wards is not None
    assert (wards.public, wards.unit, wards.people) == (True, None, "")
    assert [(column.name, column.unique) for column in wards.columns] == [("ward", True), ("beds", False)]


def test_tables_without_people_have_their_own():
    tables = hospital()
    del tables["stays"]["people"]
    policy = load(small(tables=tables))
    assert [t.people for t in policy.tables] == ["patients", "stays", "stays", "stays", ""]


def test_bounds_of_a_date_are_days():
    column = only_column(load(with_column(type="date", lower=datetime.date(2025, 1, 1), upper="2025-12-31")))
    first = datetime.date(2025, 1, 1).toordinal()
    assert (column.lower, column.upper) == (first, first + 364)  # the last day of the year is 364 days after the first


def test_other_and_nullable():
    ward = only_column(load(with_column(type="text", values=["A", "B"], other="else")))
    assert (ward.values, ward.other, ward.nullable) == (("A", "B"), "else", True)
    assert only_column(load(with_column(type="int", values=[0, 1], other=-1))).other == -1
    assert not only_column(load(with_column(type="float", lower=0, upper=1, nullable=False))).nullable


@pytest.mark.parametrize(
    "change",
    [
        lambda tables: tables["stays"].update(people="others"),
        lambda tables: tables["items"]["unit"].update(through="other_id"),
        lambda tables: tables["parts"]["unit"].update(to="stays.id"),
        lambda tables: tables["wards"]["columns"]["ward"].pop("unique"),
        lambda tables: tables["wards"]["columns"]["beds"].update(nullable=False),
        lambda tables: tables["wards"]["columns"]["ward"].update(values=["A"]),
        lambda tables: tables["wards"]["columns"]["ward"].update(values=["A"], other="B"),
    ],
    ids=["people", "through", "to", "unique", "nullable", "values", "other"],
)
def test_each_of_these_changes_what_an_answer_means(change: Any):
    tables = hospital()
    change(tables)
    assert load(small(tables=tables)).digest != load(small(tables=hospital())).digest


def test_public_false_says_nothing():
    table = small()["tables"]["visits"]
    assert load(small(tables={"visits": table | {"public": False}})) == load(small())


@pytest.mark.parametrize("file", MISTAKES, ids=lambda file: file.stem)
def test_mistake(file: Path):
    text = file.read_text()
    expected = dict(line[2:].split(": ", 1) for line in text.split("\n\n")[0].splitlines())
    with pytest.raises(PolicyError) as caught:
        load(file)
    error = caught.value
    assert error.code is ErrorCode.POLICY
    assert expected["says"] in error.what
    assert error.fix
    assert expected.get("fix", "") in error.fix
    assert error.at is not None
    assert error.at.line == int(expected["line"])
    assert error.at.source == file.name
    line = text.split("\n")[error.at.line - 1]
    assert line.startswith(error.at.excerpt)
    assert 1 <= error.at.column <= error.at.column + error.at.length - 1 <= max(1, len(line) + 1)


@pytest.mark.parametrize("file", [f for f in MISTAKES if not f.stem.startswith("toml_")], ids=lambda file: file.stem)
def test_the_same_mistake_in_a_dict(file: Path, monkeypatch: pytest.MonkeyPatch):
    if file.stem == "store_is_the_policy":
        return  # a dict is no file
    monkeypatch.chdir(file.parent)
    with pytest.raises(PolicyError) as in_file:
        load(file)
    with pytest.raises(PolicyError) as in_dict:
        load(tomllib.loads(file.read_text(), parse_float=Decimal))
    assert in_dict.value.at is None
    assert in_dict.value.fix == in_file.value.fix
    assert in_dict.value.what == in_file.value.what


def test_there_are_many_mistakes():
    assert len(MISTAKES) >= 40


def test_where_the_mark_stands():
    with pytest.raises(PolicyError) as caught:
        load(HERE / "mistakes" / "bound_off_the_grid.toml")
    assert str(caught.value) == (
        "policy [policy]: tables.visits.columns.cost.upper: must be a multiple of the step, which is 0.1\n"
        "  bound_off_the_grid.toml, line 18, column 45\n"
        '    cost = { type = "float", lower = 0, upper = 10.25, step = 0.1 }\n'
        "                                                ^^^^^\n"
        "  fix: the nearest are 10.2 and 10.3"
    )


def test_no_file(tmp_path: Path):
    with pytest.raises(PolicyError, match=r"cannot read .*none\.toml: no such file") as caught:
        load(tmp_path / "none.toml")
    assert "tacit init" in caught.value.fix
    for path in (tmp_path, "a\0b"):
        with pytest.raises(PolicyError, match="cannot read"):
            load(path)


def test_not_a_policy_at_all():
    with pytest.raises(PolicyError, match="a path or a dict, not nothing"):
        load(None)


def test_not_text(tmp_path: Path):
    file = tmp_path / "clinic.toml"
    file.write_bytes("[data]\nsource = 'Zürich'".encode("latin-1"))
    with pytest.raises(PolicyError, match="not UTF-8") as caught:
        load(file)
    assert caught.value.at is not None
    assert (caught.value.at.line, caught.value.at.column) == (2, 12)


@pytest.mark.parametrize("text", ["x = " + "[" * 5000, "x = " + "9" * 5000, "x = [" * 2000])
def test_a_file_that_would_exhaust_the_parser(text: str, tmp_path: Path):
    file = tmp_path / "clinic.toml"
    file.write_text(text)
    with pytest.raises(PolicyError):
        load(file)


@pytest.mark.parametrize("power", [999, 1000, 5000, 100_000])
def test_numbers_that_python_would_not_print(power: int):
    # Python refuses to print an integer of more than 4300 digits.
    for value in (10**power, Fraction(-1, 10**power) - 2 * 10**15, Fraction(10**power, 3)):
        for entries in (with_column(type="float", lower=-1, upper=value), with_column(type="int", values=[value])):
            with pytest.raises(PolicyError) as caught:
                load(entries)
            assert "must be" in str(caught.value)


@pytest.mark.slow
def test_importing_is_quick():
    heavy = ["numpy", "scipy", "pyarrow", "duckdb", "sqlglot", "flint"]
    code = f"import sys, tacit.policy.load, tacit.policy.check; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


WORDS = """
data ledger privacy tables analysts engine source prepared epoch today store key witness refresh neighbors epsilon delta
delta_per_question unit max_groups max_rows_per_group columns public type lower upper step values visits age ada row
through to people other unique nullable max_rows auto_up_to
"""
KEYS = st.sampled_from(WORDS.split())
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**1200, -(10**400), Fraction(1, 10**1200), Decimal("1e999999"), Decimal("nan"), 1e308])
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(
        ["duckdb", "postgres", "spark", "row", "int", "float", "text", "date", "replace", "2024-01-01", "?", "\ud800"]
    )
    | st.sampled_from(["postgresql://h/d#n", "x://", "/", "monthly", "auto"])
    | st.dates()
    | st.datetimes()
    | st.binary(max_size=3)
    | st.just(Path("x"))
)
NESTED = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=4) | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)
WORD = LEAVES | NESTED
COLUMN = st.fixed_dictionaries(
    {"type": st.sampled_from([*Type]) | WORD},
    optional={
        "lower": st.integers(-5, 5) | WORD,
        "upper": st.integers(0, 9) | WORD,
        "step": st.sampled_from([0.5, 1, 3]) | WORD,
        "values": st.lists(st.integers(0, 9) | LEAVES, max_size=3) | WORD,
        "other": st.integers(0, 9) | WORD,
        "unique": WORD,
        "nullable": st.booleans() | WORD,
    },
)
WAY = st.fixed_dictionaries({"through": WORD, "to": st.sampled_from(["visits.age", "age.id", "visits", "."]) | WORD})
TABLE = st.fixed_dictionaries(
    {
        "unit": st.just("row") | WAY | WORD,
        "columns": st.dictionaries(KEYS | st.text(max_size=3), COLUMN | WORD, max_size=3),
    },
    optional={
        "max_groups": st.integers(0, 3) | WORD,
        "max_rows_per_group": st.integers(0, 3) | WORD,
        "max_rows": st.just("auto") | st.fixed_dictionaries({"auto_up_to": st.integers(0, 3) | WORD}) | WORD,
        "public": WORD,
        "people": WORD,
    },
)
NEARLY = st.fixed_dictionaries(
    {
        "privacy": st.fixed_dictionaries(
            {"epsilon": st.floats(0.1, 9) | WORD},
            optional={"delta": st.floats(0, 1) | WORD, "delta_per_question": WORD, "neighbors": WORD},
        ),
        "tables": st.dictionaries(KEYS | st.text(max_size=3), TABLE, min_size=1, max_size=2),
        "analysts": st.fixed_dictionaries(
            {"ada": st.fixed_dictionaries({"epsilon": st.just(1) | WORD}, optional={"refresh": WORD})}
        ),
    },
    optional={
        "data": st.dictionaries(KEYS, WORD, max_size=2),
        "ledger": st.dictionaries(st.sampled_from(["store", "key", "witness"]), WORD, max_size=3),
    },
)


@pytest.mark.slow
@settings(max_examples=250 if FULL else 8, deadline=None)
@given(st.dictionaries(KEYS | st.integers(), NESTED, max_size=5) | NEARLY)
def test_whatever_it_is_given_it_loads_or_says_why(entries: dict[str, Any]):
    error = None
    try:
        assert len(load(entries).digest) == 64
    except PolicyError as raised:
        error = raised
    if error is not None:
        str(error).encode()
        assert error.at is None
        assert error.fix
