"""What a policy says that an analyst may name."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from tacit.errors import PolicyError
from tacit.policy.check import check_policy
from tacit.policy.load import load
from tacit.policy.model import TableAccess, UnitForeignKey
from tacit.policy.schema import build_json_schema

NUMBER = {"type": "int", "lower": 0, "upper": 9}
CAPS = {"max_groups": 2, "max_rows_per_group": 3}


def declare(**ada: Any) -> dict[str, Any]:
    return {
        "privacy": {"epsilon": 3, "delta": 1e-6},
        "tables": {
            "Orders": {"unit": "customer", **CAPS, "columns": {"customer": NUMBER, "Id": NUMBER, "total": NUMBER}},
            "lines": {"unit": {"through": "order_id", "to": "orders.id"}, **CAPS, "columns": {"price": NUMBER}},
            "notes": {"unit": {"through": "line", "to": "lines.nr"}, **CAPS, "columns": {"line": NUMBER, "n": NUMBER}},
            "items": {
                "public": True,
                "unique": ["item", "year"],
                "columns": {"item": NUMBER, "year": NUMBER, "list": NUMBER},
            },
        },
        "analysts": {"ada": {"epsilon": 1, "delta": 1e-7, **ada}, "bo": {"epsilon": 1, "delta": 1e-7}},
    }


def shown(**ada: Any) -> dict[str, list[str]]:
    view = load(declare(**ada)).asked_by("ada")
    return {table.name: [column.name for column in table.columns] for table in view.tables}


def test_without_a_restriction_all_that_is_declared_may_be_named():
    policy = load(declare())
    assert policy.asked_by("ada") is policy and policy.analyst("ada").access is None


def test_names_are_those_of_the_policy_in_any_case():
    assert shown(tables=["ORDERS", "items"]) == {
        "Orders": ["customer", "Id", "total"],
        "items": ["item", "year", "list"],
    }
    assert shown(columns=["orders.ID", "Orders.total"]) == {"Orders": ["Id", "total"]}
    assert shown(tables=["Orders", "lines"], columns=["orders.total"]) == {"Orders": ["total"], "lines": ["price"]}


def test_the_order_and_repetitions_do_not_matter():
    one = load(declare(columns=["orders.total", "lines.price", "orders.id"])).analyst("ada").access
    other = load(declare(columns=["lines.price", "Orders.Id", "orders.total", "orders.total"])).analyst("ada").access
    assert one == other == TableAccess((("Orders", ("Id", "total")), ("lines", ("price",))))
    assert str(one) == "Orders (Id, total), lines (price)"


def test_the_way_to_the_unit_is_told_where_nothing_on_it_is_hidden():
    policy = load(declare(tables=["Orders", "lines"]))
    assert policy.asked_by("ada").table("lines").unit == UnitForeignKey("order_id", "Orders", "Id")
    for access in (["lines"], ["lines", "notes"]):
        lines = load(declare(tables=access)).asked_by("ada").table("lines")
        assert (lines.unit, lines.people) == ("customer", "lines")
    hidden = load(declare(columns=["orders.total", "lines.price"])).asked_by("ada").table("lines")
    assert (hidden.unit, hidden.people) == ("customer", "Orders")  # the key that it is reached by is hidden
    own = load(declare(tables=["lines", "notes"], columns=["notes.n"])).asked_by("ada").table("notes")
    assert own.unit == "customer"  # its own column on the way is
    assert load(declare(tables=["lines", "notes"])).asked_by("ada").table("notes").people == "lines"


def test_keys_that_hold_a_hidden_column_are_not_told():
    assert load(declare(tables=["items"])).asked_by("ada").table("items").unique == (("item", "year"),)
    assert load(declare(columns=["items.item", "items.list"])).asked_by("ada").table("items").unique == ()


def test_keys_by_which_only_hidden_tables_are_reached_cannot_be_named():
    policy = load(declare(tables=["Orders"]))
    assert policy.asked_by("ada").nameable_keys == {}
    assert policy.asked_by("ada").referenced_keys == policy.referenced_keys == {"Orders": ("Id",), "lines": ("nr",)}


def test_a_name_with_dots_that_means_two_columns_is_refused():
    policy = declare(columns=["a.b.c"])
    policy["tables"] |= {
        "a": {"unit": "row", "columns": {"b.c": NUMBER, "d.e": NUMBER}},
        "a.b": {"unit": "row", "columns": {"c": NUMBER}},
    }
    with pytest.raises(PolicyError, match="names several columns"):
        load(policy)
    policy["analysts"]["ada"]["columns"] = ["a.d.e"]
    assert load(policy).analyst("ada").access == TableAccess((("a", ("d.e",)),))


def test_a_hidden_unit_that_is_listed_is_advised_against():
    [advice] = [a for a in check_policy(load(declare(columns=["orders.total"]))) if "hides" in a.text]
    assert advice.path == "analysts.ada.columns"
    assert advice.text.endswith('add "Orders.customer" to allow that')
    for access in ({"tables": ["Orders"]}, {"columns": ["orders.customer"]}, {"tables": ["lines", "items"]}, {}):
        assert not [a for a in check_policy(load(declare(**access))) if "hides" in a.text]


@pytest.mark.slow
@pytest.mark.parametrize("access", [{"tables": ["Orders"]}, {"columns": ["lines.price"]}, {}])
def test_the_json_schema_knows_it(access):
    jsonschema.validate(declare(**access), build_json_schema())


@pytest.mark.slow
@pytest.mark.parametrize("access", [{"tables": []}, {"columns": "lines.price"}, {"tables": [1]}])
def test_the_json_schema_refuses_what_loading_does(access):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(declare(**access), build_json_schema())
    with pytest.raises(PolicyError):
        load(declare(**access))
