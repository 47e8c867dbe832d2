"""What may be asked about, as an analyst sees it: tables, columns, bounds and keys, all of them public facts.

A server sends the plain values, and its client makes the same object of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from tacit.answers.data_profile import DataProfile
from tacit.errors import ErrorCode, Refused
from tacit.notebook_html import render_paragraph, render_table

ROW = "row"  # the unit of a table of which each row is protected
AUTO = "auto"
_MOST_KEYS = 8  # that are shown of a column


@dataclass(frozen=True)
class Schema:
    """The tables and columns that may be named, and what was released of them for everyone.

    Attributes
    ----------
    neighbors : str
        Which two data sets are neighbors: "add-remove" or "replace".
    tables : mapping of str to mapping
        Each table in the words of a policy: its unit, its caps and its columns.
    profile : DataProfile or None
        The profile that was released last.
    """

    neighbors: str
    tables: Mapping[str, Mapping[str, Any]]
    profile: DataProfile | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain values.

        Returns
        -------
        dict
            With "neighbors", "tables" and, where one was released, "profile".
        """
        found: dict[str, Any] = {"neighbors": self.neighbors, "tables": dict(self.tables)}
        return found if self.profile is None else found | {"profile": self.profile.to_dict()}

    def table_types(self, name: str) -> dict[str, str]:
        """Return the type of each column of a table that a question may name; Refused where there is no such table.

        The column that says whose row it is may be named too, unless it is a listed one that is hidden. Where its type
        is not declared, it is taken to be an integer.
        """
        table = self.tables.get(name)
        if table is None:
            names = ", ".join(self.tables)
            raise Refused(ErrorCode.UNKNOWN_TABLE, f"there is no table {name}", fix=f"the tables are {names}")
        types = {column: str(about["type"]) for column, about in table["columns"].items()}
        unit = table.get("unit", ROW)
        if unit != ROW and "unit_through" not in table and not table.get("unit_hidden", False):
            types.setdefault(unit, "int")
        return types

    def __str__(self) -> str:
        lines = []
        for name, table in self.tables.items():
            lines.append(f"{name}: {_describe_protection(table)}")
            columns = table["columns"]
            wide = max(len(column) for column in columns)
            types = max(5, *(len(about["type"]) for about in columns.values()))
            lines += [
                f"  {column.ljust(wide)}  {about['type'].ljust(types)}  {_describe_domain(about)}".rstrip()
                for column, about in columns.items()
            ]
        if self.profile is not None:
            lines += ["", str(self.profile)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = []
        for name, table in self.tables.items():
            rows = [[column, about["type"], _describe_domain(about)] for column, about in table["columns"].items()]
            parts.append(render_paragraph(name, strong=True) + render_paragraph(_describe_protection(table)))
            parts.append(render_table(["column", "type", "values"], rows, left=[True, True, True]))
        if self.profile is not None:
            parts.append(f"<pre>{escape(str(self.profile))}</pre>")
        return "".join(parts)


def _describe_protection(table: Mapping[str, Any]) -> str:
    if table.get("public"):
        return "public"
    if table["unit"] == ROW:
        return "each row is protected"
    unit = table["unit"] if "unit_through" in table else f"a {table['unit']}"
    return f"each unit, {unit}, is protected; {_describe_contribution(table)}"


def _describe_contribution(table: Mapping[str, Any]) -> str:
    """How much of one unit counts: up to the caps, or as chosen for each question."""
    declared = table.get("max_rows")
    is_chosen = declared == AUTO or isinstance(declared, Mapping)
    up_to = declared["auto_up_to"] if isinstance(declared, Mapping) else None
    in_all = up_to if is_chosen else declared
    groups, rows = table.get("max_groups"), table.get("max_rows_per_group")
    caps = f"in at most {groups} groups, with at most {rows} rows in each"
    caps += "" if in_all is None else f", and at most {in_all} in all"
    if not is_chosen:
        return f"in one answer it counts {caps}"
    most = "" if up_to is None else f", up to what {up_to} rows add"
    others = "" if groups is None else f"; where a question cannot use that, it counts {caps}"
    return f"how much it may add is chosen for each question{most}{others}"


def _describe_domain(column: Mapping[str, Any]) -> str:
    """Which values a column may have: its keys, or its bounds."""
    if (values := column.get("values")) is not None:
        shown = ", ".join(
            str(value).lower() if isinstance(value, bool) else str(value) for value in values[:_MOST_KEYS]
        )
        return f"keys {shown}" + (f", ... ({len(values)} in all)" if len(values) > _MOST_KEYS else "")
    if "lower" in column and "upper" in column:
        zone = f", {column['zone']}" if "zone" in column else ""
        grid = f" in steps of {_format_bound(column['step'])}" if "step" in column else ""
        return f"from {_format_bound(column['lower'])} to {_format_bound(column['upper'])}{grid}{zone}"
    can_be_summed = column["type"] in {"int", "float"}
    return "no bounds: compare, count, sum or average it" if can_be_summed else "compare, count or group it"


def _format_bound(value: object) -> str:
    """A bound as it is written: a number, or the text of a day or a moment."""
    return f"{value:g}" if isinstance(value, float) else str(value)
