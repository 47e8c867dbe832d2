"""What owners write, read; and what a policy says of it."""

from __future__ import annotations

import pytest

from tacit.engines.source_columns import SourceColumn
from tacit.errors import ParameterError
from tacit.policy.load import load_text
from tacit.policy.model import Type
from tacit.policy.owner_choices import (
    list_left_out,
    read_bound_fields,
    read_bounds,
    read_keys,
    read_person,
    select_tables,
)
from tacit.policy.template import StarterChoices, render_template
from tacit.policy.write_policy import write_new_policy

TABLES = {
    "orders": [
        SourceColumn("customer_no", Type.INT),
        SourceColumn("name", Type.TEXT),
        SourceColumn("kind", Type.TEXT),
        SourceColumn("day", Type.DATE),
        SourceColumn("amount", Type.FLOAT),
    ],
    "shops": [SourceColumn("city", Type.TEXT)],
}


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (Type.INT, "1"),
        (Type.INT, "1 2 3"),
        (Type.INT, "0 1.5"),
        (Type.INT, "9 1"),
        (Type.FLOAT, "nan 1"),
        (Type.FLOAT, "0 inf"),
        (Type.FLOAT, "0 1e16"),
        (Type.FLOAT, "0 1)--"),
        (Type.DATE, "2025-01-01"),
        (Type.DATE, "2025-12-31 2025-01-01"),
        (Type.DATE, "2025-01-01 yesterday"),
    ],
)
def test_bounds_that_cannot_be_read_say_what_to_write(kind, given):
    with pytest.raises(ParameterError) as refused:
        read_bounds(kind, given)
    assert read_bounds(kind, refused.value.fix) is not None  # the fix works when it is pasted


def test_bounds_are_written_without_exponents():
    assert read_bounds(Type.FLOAT, "-1e3, 1E+2") == ("-1000", "100")
    assert read_bounds(Type.DATE, " ") is None


def test_too_many_keys_are_refused():
    assert len(read_keys(",".join(map(str, range(1_000))))) == 1_000
    with pytest.raises(ParameterError):
        read_keys(",".join(map(str, range(1_001))))


def test_a_number_of_a_person_is_a_key():
    assert list_left_out(TABLES)["orders", "customer_no"] == "a key"
    assert list(select_tables(TABLES, "customer_no")) == ["orders"]
    assert list(select_tables(TABLES, "row")) == ["orders", "shops"]


def test_the_policy_has_what_was_chosen_and_nothing_else(tmp_path):
    choices = StarterChoices(
        person="customer_no",
        bounds={("orders", "day"): ("2025-01-01", "2025-12-31")},
        keys={("orders", "kind"): ('a "quoted" one', "tea")},
        left_out=frozenset({("orders", "amount")}),
    )
    policy = load_text(render_template("orders.csv", TABLES, choices), tmp_path / "tacit.toml")
    (table,) = policy.tables
    assert [column.name for column in table.columns] == ["kind", "day"]
    assert table.column("kind").values == ('a "quoted" one', "tea")
    assert table.column("day").lower is not None


def test_a_policy_is_never_replaced(tmp_path):
    write_new_policy(tmp_path / "a.toml", "1")
    with pytest.raises(ParameterError, match="exists already"):
        write_new_policy(tmp_path / "a.toml", "2")
    assert (tmp_path / "a.toml").read_text() == "1"
    with pytest.raises(ParameterError, match="cannot be written"):
        write_new_policy(tmp_path / "nowhere" / "a.toml", "2")


def test_a_name_with_spaces_around_it_is_found_without_them():
    tables = {"t": [SourceColumn(" Patient No. ", Type.INT), SourceColumn("a", Type.INT), SourceColumn("a ", Type.INT)]}
    assert read_person(tables, "patient no.") == " Patient No. "
    assert read_person(tables, "a") == "a"
    assert read_person(tables, "A ") == "a "


def test_what_was_given_for_a_column_that_is_left_out_is_not_written():
    given = {"bounds": {("orders", "customer_no"): ("3", "77")}, "keys": {("orders", "kind"): ("secret",)}}
    choices = StarterChoices(person="row", left_out=frozenset({("orders", "kind")}), **given)
    text = render_template("orders.csv", TABLES, choices)
    assert "secret" not in text and "77" not in text and "# kind " in text and "# customer_no" in text


@pytest.mark.parametrize("given", [("1,5", ""), ("", "1,5"), ("1,000", "2,000"), ("1 5", ""), ("1 2", "3"), ("", "5")])
def test_a_field_is_one_number(given):
    for kind in (Type.INT, Type.FLOAT):
        with pytest.raises(ParameterError):
            read_bound_fields(kind, *given)


def test_a_field_with_a_comma_says_how_a_number_is_written():
    with pytest.raises(ParameterError, match="one number in each field") as refused:
        read_bound_fields(Type.FLOAT, "1,5", "20")
    assert read_bound_fields(Type.FLOAT, refused.value.fix, "20") == ("1.5", "20")
