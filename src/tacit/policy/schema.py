"""The shape of a policy as JSON Schema, for editors that complete and check TOML as it is written.

`load` says more, and is the judge: what it takes is of this shape. A "?" that is still to be filled in is not.
"""

from __future__ import annotations

from typing import Any

from tacit.policy.check import INT64, MAX_NAME
from tacit.policy.contribution_caps import AUTO, MAX_GROUPS, MAX_ROWS_PER_GROUP
from tacit.policy.load import MAX_EPSILON
from tacit.policy.model import ENGINES, QuestionDialect, Type
from tacit.policy.tables import MAX_FLOAT, MAX_UNIQUE, MAX_VALUES
from tacit.privacy.unit import Neighbors

Json = dict[str, Any]

_DAY = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TEXT: Json = {"type": "string", "minLength": 1}
_WHOLE: Json = {"type": "integer", "minimum": INT64[0], "maximum": INT64[-1]}
_REAL: Json = {"type": "number", "minimum": -MAX_FLOAT, "maximum": MAX_FLOAT}
_DATE: Json = {"type": "string", "pattern": _DAY}
_TIME = "[ Tt][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?"
_DAY_OR_MOMENT: Json = {"type": "string", "pattern": f"{_DAY[:-1]}({_TIME})?$"}
_MOMENT: Json = {"type": "string", "pattern": f"{_DAY[:-1]}{_TIME}$"}
_ZONE: Json = {"type": "string", "pattern": "^[A-Za-z0-9_+/-]+$"}
_YES: Json = {"type": "boolean"}


def build_json_schema() -> Json:
    """The whole schema, as plain values."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A policy of Tacit",
        "description": "Who is protected, what may be asked about, and how much may be told. All of it is public.",
        **_object(
            {
                "data": _data(),
                "ledger": _ledger(),
                "privacy": _privacy(),
                "tables": _describe_shape(
                    _entries_by_name({"anyOf": [_private(), _public()]}), "The tables that may be named."
                ),
                "analysts": _describe_shape(_entries_by_name(_analyst(), "^\\S+$"), "Who may ask, each up to a cap."),
            },
            ["privacy", "tables", "analysts"],
        ),
    }


def _data() -> Json:
    source = "A file or folder, a database's URL, or a schema of Spark's catalog; without it, open() takes the data."
    copy = 'A file that the data is read into, once for each epoch; or "memory". Without it, its size decides.'
    today = "The day that CURRENT_DATE stands for; without it such questions are refused."
    dialect = _describe_shape(
        {"enum": list(QuestionDialect)}, "Whose SQL questions are written in.", str(QuestionDialect.POSTGRES)
    )
    return _object(
        {
            "engine": _describe_shape({"enum": list(ENGINES)}, "What holds the data and adds it up.", ENGINES[0]),
            "source": _describe_shape(_TEXT, source),
            "copy": _describe_shape(_TEXT, copy),
            "prepared": _describe_shape(_TEXT, "The name that copy had before."),
            "epoch": _describe_shape(_WHOLE | {"minimum": 0}, "Raise it when the data has changed.", 1),
            "today": _describe_shape(_DAY_OR_MOMENT, today),
            "dialect": dialect,
        }
    )


def _ledger() -> Json:
    store = "A file, or postgresql://host/database; by default a file beside the policy."
    key = "The file of the key that signs receipts; by default beside the ledger."
    witness = "The file that notices an older copy of the ledger; by default beside it."
    named = {"store": store, "key": key, "witness": witness}
    return _object({name: _describe_shape(_TEXT, text) for name, text in named.items()})


def _privacy() -> Json:
    neighbors = _describe_shape(
        {"enum": [str(n) for n in Neighbors]},
        "With or without one unit, or one unit's rows for another's.",
        str(Neighbors.ADD_REMOVE),
    )
    share = _describe_shape(_delta(), "What one question may use of delta; a thousandth, unless said.")
    whole = {"neighbors": neighbors, **_budget(), "delta_per_question": share}
    return _describe_shape(_object(whole, ["epsilon"]), "What is promised over all analysts together.")


def _analyst() -> Json:
    refresh = _describe_shape({"enum": ["monthly"]}, "The cap counts anew in each calendar month.")
    names: Json = {"type": "array", "items": _TEXT, "minItems": 1}
    qualified: Json = {"type": "array", "items": {"type": "string", "pattern": r"^.+\..+$"}, "minItems": 1}
    tables = "The tables that this analyst may name; without it, those of columns, or all where there are neither."
    columns = "Of the tables that it names, the only columns that this analyst may name: visits.age."
    access = {"tables": _describe_shape(names, tables), "columns": _describe_shape(qualified, columns)}
    return _object({**_budget(), "refresh": refresh, **access}, ["epsilon"])


def _budget() -> Json:
    epsilon = {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_EPSILON}
    return {
        "epsilon": _describe_shape(epsilon, "Below 0.1 is high privacy, 0.1 to 1 is good, above 5 is large."),
        "delta": _describe_shape(_delta(), "The probability that the promise fails altogether.", 0),
    }


def _delta() -> Json:
    return {"type": "number", "minimum": 0, "exclusiveMaximum": 1}


def _private() -> Json:
    through = _describe_shape(_TEXT, "The column that refers to the other table.")
    to = _describe_shape({"type": "string", "pattern": r"^[^.]+\..+$"}, "That table and its unique column: orders.id.")
    way = _object({"through": through, "to": to}, ["through", "to"])
    unit = {"anyOf": [_TEXT | {"maxLength": MAX_NAME, "not": {"const": "?"}}, way]}
    rows = _count(MAX_ROWS_PER_GROUP)
    return _object(
        {
            "public": _describe_shape({"const": False}, "Its rows are somebody's, and protected.", False),
            "unit": _describe_shape(
                unit, 'The column that says whose row it is; "row"; or the way to a table that has it.'
            ),
            "people": _describe_shape(
                _TEXT,
                "The same word in all tables that are about the same people; by default the table's name.",
            ),
            "max_groups": _describe_shape(_count(MAX_GROUPS), "Groups of one answer that one unit may touch."),
            "max_rows_per_group": _describe_shape(rows, "Rows of one unit counted in each group."),
            "max_rows": _describe_shape(
                {"anyOf": [{"const": AUTO}, rows, _object({"auto_up_to": rows}, ["auto_up_to"])]},
                'Rows of one unit counted in all groups together; "auto": chosen for each question.',
            ),
            "columns": _columns(),
        },
        ["unit", "columns"],
    )


def _public() -> Json:
    public = _describe_shape({"const": True}, "Its rows are nobody's: they may be joined to private ones.")
    unique = _describe_shape(_YES, "No two rows share a value, so others may be joined on it.", False)
    names = {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": MAX_UNIQUE}
    several = {"anyOf": [names, {"type": "array", "items": names, "minItems": 1}]}
    together = _describe_shape(
        several, "Columns that no two rows share together, so others may be joined on all of them."
    )
    whole = {"public": public, "unique": together, "columns": _columns(unique=unique)}
    return _object(whole, ["public", "columns"])


def _columns(**more: Json) -> Json:
    never = _describe_shape(_YES, "false: a missing number is read as lower, and averages are sharper.", True)
    step = _describe_shape(
        {"type": "number", "exclusiveMinimum": 0},
        "The grid that sums are exact on; without it, it follows from the bounds.",
    )
    ends = _bounds(_WHOLE, _WHOLE)
    reals = {**_bounds(_REAL, _REAL), "step": step}
    days = _bounds(_DATE, _DATE)
    moments = _bounds(_DAY_OR_MOMENT, _MOMENT)
    zone = _describe_shape(_ZONE, "The time zone of the clock: a place such as Europe/Zurich.", "UTC")
    return _entries_by_name(
        {
            "anyOf": [
                _column(Type.INT, {**ends, "nullable": never, **_keys(_WHOLE), "other": _other(_WHOLE)}, more),
                _column(Type.FLOAT, {**reals, "nullable": never}, more),
                _column(Type.TEXT, {**_keys({"type": "string"}), "other": _other({"type": "string"})}, more),
                _column(Type.BOOL, {}, more),
                _column(Type.DATE, {**days, **_keys(_DATE), "zone": zone}, more),
                _column(Type.TIMESTAMP, {**moments, "zone": zone}, more),
            ]
        }
    )


def _column(kind: Type, keys: Json, more: Json) -> Json:
    plain: Json = {
        "nullable": _describe_shape({"const": True}, "Values may be missing.", True),
        "unique": _describe_shape({"const": False}, "Only columns of public tables are declared unique.", False),
    }
    named = _describe_shape({"const": str(kind)}, "What the values are.")
    whole = _object({"type": named, **plain, **keys, **more}, ["type"])
    needs = {name: [other] for name, other in (("lower", "upper"), ("upper", "lower"), ("other", "values"))}
    needs["step"] = ["lower", "upper"]
    return whole | {"dependentRequired": {name: others for name, others in needs.items() if name in keys}}


def _keys(item: Json) -> Json:
    listed = {"type": "array", "minItems": 1, "maxItems": MAX_VALUES, "uniqueItems": True, "items": item}
    return {"values": _describe_shape(listed, "The keys, all of them public: groups by them are all shown.")}


def _other(item: Json) -> Json:
    return _describe_shape(item, "The key that stands for all values that are not listed.")


def _bounds(lower: Json, upper: Json) -> Json:
    return {
        "lower": _describe_shape(lower, "Lower values are read as this one. Public, so not chosen by looking."),
        "upper": _describe_shape(upper, "Higher values are read as this one."),
    }


def _count(most: int) -> Json:
    return {"type": "integer", "minimum": 1, "maximum": most}


def _entries_by_name(each: Json, pattern: str = "") -> Json:
    """Entries whose names are the owner's."""
    names: Json = {"minLength": 1, "maxLength": MAX_NAME} | ({"pattern": pattern} if pattern else {})
    return {"type": "object", "minProperties": 1, "propertyNames": names, "additionalProperties": each}


def _object(entries: Json, required: list[str] | None = None) -> Json:
    return {
        "type": "object",
        "properties": entries,
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }


def _describe_shape(shape: Json, text: str, default: object = None) -> Json:
    """The shape with what it means, and what holds where it is left out if that is one value."""
    return shape | {"description": text} | ({} if default is None else {"default": default})
