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
                "data": _object(
                    {
                        "engine": {"enum": list(ENGINES)},
                        "source": _describe_shape(
                            _TEXT, "A file or folder, a database's URL, or a schema of Spark's catalog."
                        ),
                        "copy": _describe_shape(
                            _TEXT, 'A file that the data is read into, once for each epoch; or "memory".'
                        ),
                        "prepared": _describe_shape(_TEXT, "The name that copy had before."),
                        "epoch": _describe_shape(_WHOLE | {"minimum": 0}, "Raise it when the data has changed."),
                        "today": _describe_shape(_DAY_OR_MOMENT, "The day that CURRENT_DATE stands for."),
                        "dialect": {
                            "enum": list(QuestionDialect),
                            "description": "Whose SQL questions are written in.",
                        },
                    }
                ),
                "ledger": _object(
                    {
                        "store": _describe_shape(_TEXT, "A file, or postgresql://host/database."),
                        "key": _describe_shape(_TEXT, "The file of the key that signs receipts."),
                        "witness": _describe_shape(_TEXT, "The file that notices an older copy of the ledger."),
                    }
                ),
                "privacy": _privacy(),
                "tables": _describe_shape(
                    _entries_by_name({"anyOf": [_private(), _public()]}), "The tables that may be named."
                ),
                "analysts": _describe_shape(_entries_by_name(_analyst(), "^\\S+$"), "Who may ask, each up to a cap."),
            },
            ["privacy", "tables", "analysts"],
        ),
    }


def _privacy() -> Json:
    neighbors = _describe_shape({"enum": [str(n) for n in Neighbors]}, "With or without one unit, or one for another.")
    share = _describe_shape(_delta(), "What one question may use of delta; a thousandth, unless said.")
    whole = {"neighbors": neighbors, **_budget(), "delta_per_question": share}
    return _describe_shape(_object(whole, ["epsilon"]), "What is promised over all analysts together.")


def _analyst() -> Json:
    refresh = _describe_shape({"enum": ["monthly"]}, "The cap counts anew in each calendar month.")
    return _object({**_budget(), "refresh": refresh}, ["epsilon"])


def _budget() -> Json:
    epsilon = {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_EPSILON}
    return {
        "epsilon": _describe_shape(epsilon, "Below 0.1 is high privacy, 0.1 to 1 is good, above 5 is large."),
        "delta": _describe_shape(_delta(), "The chance that the promise fails altogether."),
    }


def _delta() -> Json:
    return {"type": "number", "minimum": 0, "exclusiveMaximum": 1}


def _private() -> Json:
    way = _object({"through": _TEXT, "to": {"type": "string", "pattern": r"^[^.]+\..+$"}}, ["through", "to"])
    unit = {"anyOf": [_TEXT | {"maxLength": MAX_NAME, "not": {"const": "?"}}, way]}
    rows = _count(MAX_ROWS_PER_GROUP)
    return _object(
        {
            "public": {"const": False},
            "unit": _describe_shape(
                unit, 'The column that says whose row it is; "row"; or the way to a table that has it.'
            ),
            "people": _describe_shape(_TEXT, "Tables whose units are the same people have the same name for them."),
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
    unique = _describe_shape(_YES, "No two rows share a value, so others may be joined on it.")
    names = {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": MAX_UNIQUE}
    several = {"anyOf": [names, {"type": "array", "items": names, "minItems": 1}]}
    together = _describe_shape(
        several, "Columns that no two rows share together, so others may be joined on all of them."
    )
    whole = {"public": public, "unique": together, "columns": _columns(unique=unique)}
    return _object(whole, ["public", "columns"])


def _columns(**more: Json) -> Json:
    never = _describe_shape(_YES, "false: a missing number is read as lower, and averages are sharper.")
    ends = {"lower": _WHOLE, "upper": _WHOLE}
    reals = {"lower": _REAL, "upper": _REAL, "step": {"type": "number", "exclusiveMinimum": 0}}
    days = {"lower": _DATE, "upper": _DATE}
    zone = _describe_shape(_ZONE, "Where the clock hangs: a place such as Europe/Zurich; UTC without it.")
    return _entries_by_name(
        {
            "anyOf": [
                _column(Type.INT, {**ends, "nullable": never, **_keys(_WHOLE), "other": _WHOLE}, more),
                _column(Type.FLOAT, {**reals, "nullable": never}, more),
                _column(Type.TEXT, {**_keys({"type": "string"}), "other": {"type": "string"}}, more),
                _column(Type.BOOL, {}, more),
                _column(Type.DATE, {**days, **_keys(_DATE), "zone": zone}, more),
                _column(Type.TIMESTAMP, {"lower": _DAY_OR_MOMENT, "upper": _MOMENT, "zone": zone}, more),
            ]
        }
    )


def _column(kind: Type, keys: Json, more: Json) -> Json:
    plain: Json = {"nullable": {"const": True}, "unique": {"const": False}}
    whole = _object({"type": {"const": str(kind)}, **plain, **keys, **more}, ["type"])
    needs = {name: [other] for name, other in (("lower", "upper"), ("upper", "lower"), ("other", "values"))}
    needs["step"] = ["lower", "upper"]
    return whole | {"dependentRequired": {name: others for name, others in needs.items() if name in keys}}


def _keys(item: Json) -> Json:
    return {"values": {"type": "array", "minItems": 1, "maxItems": MAX_VALUES, "uniqueItems": True, "items": item}}


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


def _describe_shape(shape: Json, text: str) -> Json:
    return shape | {"description": text}
