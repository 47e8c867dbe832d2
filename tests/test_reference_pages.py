"""The pages of the reference that are written from the code are those that the code gives now."""

from __future__ import annotations

from typing import Any

import pytest
from tools.write_reference import PAGES, REFERENCE, describe_type

from tacit.policy.load import load
from tacit.policy.schema import build_json_schema


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_what_the_code_gives(page):
    assert (REFERENCE / page).read_text(encoding="utf-8") == PAGES[page](), "run python tools/write_reference.py"


def test_every_field_has_a_meaning():
    def fields(shape: Any, at: str = ""):
        if isinstance(shape, dict):
            for name, field in shape.get("properties", {}).items():
                if field.get("type") != "object" and "auto_up_to" not in name:
                    yield f"{at}.{name}", field
            for name, part in shape.items():
                yield from fields(part, f"{at}.{name}")
        elif isinstance(shape, list):
            for part in shape:
                yield from fields(part, at)

    found = list(fields(build_json_schema()))
    assert len(found) > 60
    assert not [place for place, field in found if not field.get("description")]


def test_the_defaults_are_those_of_a_policy_that_says_nothing():
    columns = {"a": {"type": "int"}, "at": {"type": "date"}}
    given = {
        "privacy": {"epsilon": 1},
        "tables": {"t": {"unit": "row", "columns": columns}, "p": {"public": True, "columns": {"k": {"type": "int"}}}},
        "analysts": {"ada": {"epsilon": 1}},
    }
    policy, parts = load(given), build_json_schema()["properties"]
    data, privacy = parts["data"]["properties"], parts["privacy"]["properties"]
    assert policy.engine == data["engine"]["default"]
    assert policy.epoch == data["epoch"]["default"]
    assert policy.dialect == data["dialect"]["default"]
    assert policy.neighbors == privacy["neighbors"]["default"]
    assert policy.budget.delta == privacy["delta"]["default"] == policy.analysts[0].budget.delta
    private, public = parts["tables"]["additionalProperties"]["anyOf"]
    assert policy.table("t").public == private["properties"]["public"]["default"]
    number, *_, date, _ = private["properties"]["columns"]["additionalProperties"]["anyOf"]
    assert policy.table("t").column("a").nullable == number["properties"]["nullable"]["default"]
    assert policy.table("t").column("at").zone is None and date["properties"]["zone"]["default"] == "UTC"  # None is UTC
    unique = public["properties"]["columns"]["additionalProperties"]["anyOf"][0]["properties"]["unique"]
    assert policy.table("p").column("k").unique == unique["default"]


def test_types_are_described():
    assert describe_type({"type": "integer", "minimum": 1, "maximum": 10_000}) == "whole number from 1 to 10,000"
    assert describe_type({"type": "number", "exclusiveMinimum": 0}) == "number above 0"
    assert describe_type({"anyOf": [{"const": "auto"}, {"type": "boolean"}]}) == '`"auto"` or `true`, `false`'
