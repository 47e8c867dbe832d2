from __future__ import annotations

import re
import tomllib
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.engines.left_out import LeftOut
from tacit.engines.source_columns import SourceColumn
from tacit.errors import PolicyError
from tacit.policy.check import DELTA_RULE, find_name_problem
from tacit.policy.load import load
from tacit.policy.model import Type, UnitForeignKey
from tacit.policy.tables import DuplicateNames
from tacit.policy.template import StarterChoices, explain_left_out, render_template


def columns(**kinds: Type | LeftOut) -> list[SourceColumn]:
    return [SourceColumn(name, kind) for name, kind in kinds.items()]


TABLES = {
    "visits": columns(patient_id=Type.INT, age=Type.INT, cost=Type.FLOAT, ward=Type.TEXT),
    "staff on call": [SourceColumn("day", Type.DATE), SourceColumn('is "late"', Type.BOOL)],
}


def refusal(file: Path, text: str) -> PolicyError:
    file.write_text(text)
    with pytest.raises(PolicyError) as caught:
        load(file)
    return caught.value


def test_a_column_that_is_left_out_is_a_comment_with_the_reason(tmp_path: Path):
    read = [*columns(age=Type.INT, tags=LeftOut("VARCHAR[]")), SourceColumn("seen at", LeftOut("TIME"))]
    text = render_template(None, {"visits": read})
    assert "# tags      is left out, stored as VARCHAR[]: holds several values" in text
    assert '# "seen at" is left out, stored as TIME: a time of day' in text
    assert list(tomllib.loads(text)["tables"]["visits"]["columns"]) == ["age"]
    nested = LeftOut('STRUCT(a VARCHAR,\n"x" = 1)')
    assert list(tomllib.loads(render_template(None, {"t": columns(s=nested)}))["tables"]["t"]["columns"]) == []


def test_each_unit_is_asked_for_until_it_is_filled(tmp_path: Path):
    file = tmp_path / "clinic.toml"
    text = render_template("data/clinic.duckdb", TABLES)
    asked = []
    for answer in ["patient_id", "row"]:
        error = refusal(file, text)
        assert error.at is not None
        lines = text.split("\n")
        line = lines[error.at.line - 1]
        assert line[error.at.column - 1 :].startswith('"?"')
        lines[error.at.line - 1] = line.replace('"?"', f'"{answer}"', 1)
        text = "\n".join(lines)
        asked.append(error.what.split(":")[0])
    assert asked == ["tables.visits.unit", 'tables."staff on call".unit']
    file.write_text(text)
    policy = load(file)
    assert policy.source == tmp_path / "data" / "clinic.duckdb"
    assert policy.books is not None
    assert policy.books.store == tmp_path / "clinic.ledger"
    assert (
        {t.name: [(c.name, c.type) for c in t.columns] for t in policy.tables}
        == {
            "visits": [each[:2] for each in TABLES["visits"][1:]],  # all but patient_id, which says whose row it is
            "staff on call": [each[:2] for each in TABLES["staff on call"]],
        }
    )
    assert policy.analysts[0].budget.delta > 0  # so that the first GROUP BY is answered


def test_what_says_whose_row_it_is_is_offered_as_the_unit_and_no_column(tmp_path: Path):
    text = render_template(None, TABLES)
    assert 'unit = "?"    # "patient_id", perhaps' in text
    assert '# patient_id = { type = "int" }    # left out: a key' in text
    assert text.count("perhaps") == 1  # the staff have no such column


def test_the_rule_for_delta_is_the_one_that_check_says():
    assert f"# {DELTA_RULE}." in render_template(None, {})


def test_a_column_as_unit_needs_no_caps(tmp_path: Path):
    text = render_template(None, {"visits": TABLES["visits"]}).replace('unit = "?"', 'unit = "patient_id"', 1)
    file = tmp_path / "clinic.toml"
    file.write_text(text)
    assert load(file).tables[0].auto
    error = refusal(tmp_path / "clinic.toml", text.replace('max_rows = "auto"\n', "", 1))
    assert error.what == "tables.visits.max_groups: is missing"
    assert error.at is not None
    assert error.at.excerpt == "[tables.visits]"
    assert 'write max_rows = "auto"' in error.fix


def test_where_no_column_looks_like_a_unit_the_choice_is_a_comment(tmp_path: Path):
    staff = render_template(None, {"staff": TABLES["staff on call"]})
    assert '\n# max_rows = "auto"\n' in staff
    file = tmp_path / "clinic.toml"
    for unit in ('unit = "row"', 'unit = "who"\nmax_rows = "auto"', 'unit = "who"\nmax_rows = { auto_up_to = 500 }'):
        file.write_text(staff.replace('unit = "?"', unit))
        assert load(file).tables[0].auto == ("auto" in unit)
    visits = render_template(None, {"visits": TABLES["visits"]})
    assert '\nmax_rows = "auto"\n' in visits
    # with this line beside it, a row or a public table is an error that says to leave it out
    for instead in ('unit = "row"', "public = true"):
        assert refusal(file, visits.replace('unit = "?"', instead)).fix.startswith("leave it out")


def test_without_tables_it_is_an_example_that_loads(tmp_path: Path):
    file = tmp_path / "clinic.toml"
    file.write_text(render_template(None, {}))
    policy = load(file)
    assert policy.source is None
    assert [(t.name, t.public) for t in policy.tables] == [("visits", False), ("wards", True)]
    assert [a.name for a in policy.analysts] == ["ada"]
    assert (policy.tables[0].auto, policy.tables[0].has_caps) == (True, False)


def test_what_the_comments_offer_is_valid(tmp_path: Path):
    file = tmp_path / "clinic.toml"
    file.write_text(re.sub(r"^# (?=[a-z_]+ = )", "", render_template(None, {}), flags=re.MULTILINE))
    policy = load(file)
    assert policy.books is not None
    assert policy.books.witness == Path("/elsewhere/clinic.witness")
    assert policy.analysts[0].monthly
    assert policy.analysts[0].budget.delta == Fraction(1, 10**7)


def test_the_keys_that_the_comments_name_are_keys(tmp_path: Path):
    file = tmp_path / "clinic.toml"
    text = render_template(None, {"orders": columns(total=Type.INT), "items": columns(day=Type.DATE, kind=Type.TEXT)})
    caps = 'max_rows = "auto"\n'
    assert f"# {caps}" in text
    way = 'unit = { through = "order_id", to = "orders.id" }'
    assert way in text
    for before, after in (
        ('"int" }    # lower = 0, upper = 100', '"int", lower = 0, upper = 100, nullable = false } #'),
        ('unit = "?"', 'unit = "customer"\npeople = "patients"\n' + caps),
        ('unit = "?"', f"{way}\n{caps}"),
        ('"date" }    # lower = 2025-01-01, upper = 2025-12-31', '"date", lower = 2025-01-01, upper = 2025-12-31 } #'),
        ('"text" }    # values = ["A", "B"]', '"text", values = ["A", "B"], other = "C" } #'),
    ):
        assert before in text
        text = text.replace(before, after, 1)
    file.write_text(text)
    items = load(file).table("items")
    assert items is not None
    assert items.people == "patients"
    assert [column.other for column in items.columns] == [None, "C"]


def test_every_section_is_explained():
    for text in (render_template("x.duckdb", TABLES), render_template(None, {})):
        lines = text.split("\n")
        for before, line in pairwise(lines):
            if line.startswith("["):
                assert before.startswith("# ")
        assert all(len(line) <= 120 for line in lines)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@pytest.mark.slow
@settings(deadline=None)
@given(
    NAMES,
    st.dictionaries(NAMES, st.lists(st.tuples(NAMES, st.sampled_from(Type)), unique_by=lambda c: c[0])),
    st.sampled_from([None, "row"]),
)
def test_any_names_give_toml(source: str, tables: dict[str, list[tuple[str, Type]]], person: str | None):
    read = {name: [SourceColumn(*each) for each in some] for name, some in tables.items()}
    entries = tomllib.loads(render_template(source, read, StarterChoices(person)))
    assert entries["data"]["source"] == source
    for name, some in read.items():
        declared = entries["tables"][name]["columns"]
        names = DuplicateNames()
        named = [column for column in some if not (find_name_problem(column.name) or names(column.name))]
        listed = [(column.name, column.kind) for column in named if explain_left_out(column) is None]
        assert [(column, declared[column]["type"]) for column in declared] == listed
        assert entries["tables"][name]["unit"] == (person or "?")


def test_what_the_owner_decides_is_written(tmp_path: Path):
    shop = {
        "orders": columns(order_id=Type.INT, customer_id=Type.INT, total=Type.FLOAT, note=Type.TEXT),
        "customers": columns(id=Type.INT, email=Type.TEXT, city=Type.TEXT),
        "order_lines": columns(order_id=Type.INT, price=Type.FLOAT),
        "holidays": columns(day=Type.DATE),
    }
    choices = StarterChoices(
        "customer_id", Fraction(5, 2), "bob", frozenset({("customers", "email")}), {("orders", "total"): ("0", "99.5")}
    )
    text = render_template(None, shop, choices)
    assert '"?"' not in text and "# The table holidays is left out" in text
    file = tmp_path / "shop.toml"
    file.write_text(text)
    policy = load(file)
    assert {table.name: table.unit for table in policy.tables} == {
        "orders": "customer_id",
        "customers": "id",
        "order_lines": UnitForeignKey("order_id", "orders", "order_id"),
    }
    assert {table.people for table in policy.tables} == {"customer"}
    orders, customers = policy.table("orders"), policy.table("customers")
    assert orders is not None and customers is not None
    assert [(c.name, c.lower, c.upper) for c in orders.columns] == [("total", 0, Fraction(199, 2))]
    assert [column.name for column in customers.columns] == ["email", "city"]
    assert [(a.name, a.budget.epsilon) for a in policy.analysts] == [("bob", Fraction(5, 4))]
    assert policy.budget.epsilon == Fraction(5, 2)


@pytest.mark.parametrize("name", ["a\nb", "#a", "*", "x" * 129, "", "SIZE"])
def test_columns_whose_names_no_policy_may_have_are_left_out_unnamed(name: str, tmp_path: Path):
    read = [SourceColumn("size", Type.INT), SourceColumn(name, Type.TEXT)]
    text = render_template("visits.csv", {"visits": read}, StarterChoices("row"))
    assert "# column 2 is left out, for its name: " in text
    (tmp_path / "tacit.toml").write_text(text, encoding="utf-8")
    (table,) = load(tmp_path / "tacit.toml").tables
    assert [column.name for column in table.columns] == ["size"]


def test_what_the_values_are_like_is_not_written():
    read = [SourceColumn("code", Type.TEXT, distinct=1.0), SourceColumn("age", Type.INT)]
    text = render_template("visits.csv", {"visits": read}, StarterChoices("row"))
    assert '# code = { type = "text" }    # left out: it may describe somebody' in text
