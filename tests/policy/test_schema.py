"""The schema for editors takes what `load` takes, and refuses what is wrong in shape."""

from __future__ import annotations

import datetime
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tacit.demo.clinic import POLICY_TEXT
from tacit.engines.source_columns import SourceColumn
from tacit.policy.load import load
from tacit.policy.model import Type
from tacit.policy.schema import build_json_schema
from tacit.policy.template import render_template

HERE = Path(__file__).parent
GUIDE = HERE.parents[1] / "docs" / "guide" / "policy.md"
MISTAKES = sorted(file for file in (HERE / "mistakes").glob("*.toml") if not file.stem.startswith("toml_"))
KINDS: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}
# A schema sees shapes. That two values belong together, or that a file is another's, only `load` sees.
BEYOND = """
access_column_misspelled access_column_of_a_hidden_table access_column_unknown access_table_unknown
auto_of_rows auto_up_to_of_rows auto_with_max_groups_alone auto_with_max_rows_per_group_alone
groups_above_auto_up_to no_caps_at_all rows_per_group_above_auto_up_to
bound_off_the_grid bounds_swapped column_by_dotted_keys column_in_a_section column_names_differ_in_case
column_moments_swapped
date_bound_no_such_day date_bounds_swapped delta_per_question_too_large groups_above_max_rows key_is_the_data
max_groups_missing max_rows_missing nullable_without_bounds other_is_listed people_of_a_table_that_reaches_its_unit
postgres_source_a_file postgres_without_source prepared_is_the_data prepared_of_spark public_only
row_with_max_groups row_with_max_rows rows_per_group_above_max_rows step_too_fine step_too_fine_far_out
store_is_the_data store_is_the_data_by_another_path store_is_the_policy store_url_broken
store_url_of_another_database store_url_with_a_bad_name store_url_with_a_name_only store_url_without_database
table_names_differ_in_case through_a_circle through_a_public_table through_a_table_of_rows through_itself
through_no_table through_without_caps values_no_such_day values_out_of_bounds values_outside_the_days
witness_is_the_key witness_is_the_store
"""


def holds(value: Any, shape: dict[str, Any]) -> bool:
    """Whether the value is of the shape, by the part of JSON Schema that the schema uses."""
    return all(_rule(value, name, rule, shape) for name, rule in shape.items())


def _rule(value: Any, name: str, rule: Any, shape: dict[str, Any]) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match name:
        case "$schema" | "title" | "description" | "default":
            return True
        case "type":
            return isinstance(value, KINDS[rule]) and (rule == "boolean") == isinstance(value, bool)
        case "const":
            return type(value) is type(rule) and value == rule
        case "enum":
            return value in rule
        case "anyOf":
            return any(holds(value, each) for each in rule)
        case "not":
            return not holds(value, rule)
        case "minimum" | "maximum":
            return not number or (value >= rule if name == "minimum" else value <= rule)
        case "exclusiveMinimum" | "exclusiveMaximum":
            return not number or (value > rule if name == "exclusiveMinimum" else value < rule)
        case "minLength" | "maxLength":
            return not isinstance(value, str) or (len(value) >= rule if name == "minLength" else len(value) <= rule)
        case "pattern":
            return not isinstance(value, str) or re.search(rule, value) is not None
    return _parts(value, name, rule, shape)


def _parts(value: Any, name: str, rule: Any, shape: dict[str, Any]) -> bool:
    if isinstance(value, list):
        texts = [json.dumps(item) for item in value]
        return {
            "minItems": lambda: len(value) >= rule,
            "maxItems": lambda: len(value) <= rule,
            "uniqueItems": lambda: len(set(texts)) == len(texts),
            "items": lambda: all(holds(item, rule) for item in value),
        }[name]()
    if isinstance(value, dict):
        known = shape.get("properties", {})
        return {
            "properties": lambda: all(holds(value[key], each) for key, each in rule.items() if key in value),
            "additionalProperties": lambda: all(
                rule is not False and holds(value[key], rule) for key in value if key not in known
            ),
            "required": lambda: all(key in value for key in rule),
            "minProperties": lambda: len(value) >= rule,
            "propertyNames": lambda: all(holds(key, rule) for key in value),
            "dependentRequired": lambda: all(other in value for key in rule if key in value for other in rule[key]),
        }[name]()
    return True


def entries(text: str) -> Any:
    """TOML as an editor hands it to a schema: days are text."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items()}
        if isinstance(value, list):
            return [plain(each) for each in value]
        return value.isoformat() if isinstance(value, datetime.date | datetime.time) else value

    return plain(tomllib.loads(text))


def filled(text: str) -> str:
    return text.replace('unit = "?"', 'unit = "row"')


def guide() -> str:
    (text,) = re.findall(r"^```toml\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return str(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param((HERE / "clinic.toml").read_text(), id="clinic"),
        pytest.param(POLICY_TEXT, id="demo"),
        pytest.param(render_template(None, {}), id="example"),
        pytest.param(
            filled(render_template("x.duckdb", {"t": [SourceColumn(kind, kind) for kind in Type]})), id="template"
        ),
        pytest.param(guide(), id="guide"),
    ],
)
def test_what_loads_is_of_the_shape(text: str):
    assert load(tomllib.loads(text)).tables
    assert holds(entries(text), build_json_schema())


def test_what_is_still_to_be_filled_in_is_not():
    text = render_template("x.duckdb", {"t": [SourceColumn("n", Type.INT)]})
    assert not holds(entries(text), build_json_schema())
    assert holds(entries(filled(text)), build_json_schema())
    unbounded = filled(text).replace('type = "int" }', 'type = "int", lower = "?", upper = 9 }')
    assert not holds(entries(unbounded), build_json_schema())


@pytest.mark.parametrize("file", MISTAKES, ids=lambda file: file.stem)
def test_a_mistake_of_shape_is_seen_in_the_editor(file: Path):
    assert holds(entries(file.read_text()), build_json_schema()) == (file.stem in BEYOND.split())


def test_it_is_plain_json():
    assert json.loads(json.dumps(build_json_schema())) == build_json_schema()
