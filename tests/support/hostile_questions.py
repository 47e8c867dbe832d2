"""Random questions over a policy: what an attacker may write, sound or not, about every declared column."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

_NUMBERS = (
    "0",
    "-1",
    "7",
    "0.5",
    "-0.0",
    "1e100",
    "-1e100",
    "5e-324",
    "9007199254740993",
    "9223372036854775807",
    "2147483648",
    "1e-100",
    "3.7",
)
_TEXTS = (
    "'a'",
    "''",
    "'flu'",
    "'7'",
    "'%'",
    "'e\u0301'",
    "'É'",
    "'😀'",
    "'NULL'",
    "'\ufeff'",
    "' '",
    "'text 7'",
    "''''",
    "'2025-01-01'",
)
_PATTERNS = ("'a%'", "'%'", "'_'", "''", "'%é%'", "'__%'", "'%7'", "'ı'", "'%_%_%'")
_DATES = ("DATE '2025-01-01'", "DATE '0001-01-01'", "DATE '9999-12-31'", "DATE '1970-01-01'", "'2024-02-29'")
_PARTS = ("year", "quarter", "month", "week", "day")


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


class Questions:
    """Draws questions about the tables of a policy."""

    def __init__(self, tables: Mapping[str, Any], random: Random) -> None:
        self.tables = {name: table for name, table in tables.items() if "unit" in table}
        self.random = random

    def draw(self) -> str:
        """A question."""
        table = self.random.choice(list(self.tables))
        shape = self.random.random()
        if shape < 0.14:
            return self._per_unit(table)
        if shape < 0.19:
            return self._joined(table)
        if shape < 0.24:
            return self._union(table)
        source = quoted(table)
        if shape < 0.32:
            source = f"(SELECT * FROM {source} {self._where(table)}) AS rows_of_it"
            source = source.replace("*", ", ".join(map(quoted, self._columns(table))) or "1 AS one", 1)
        return self._select(table, source, self._where(table))

    # Clauses.

    def _select(self, table: str, source: str, where: str) -> str:
        names = [self._aggregate(table) for _ in range(self.random.choice((1, 1, 1, 2, 3)))]
        aggregates = [f"{name} AS a{number}" for number, name in enumerate(names)]
        keys = [self._key(table) for _ in range(self.random.choice((0, 0, 1, 1, 2)))]
        listed = [f"{key} AS k{number}" for number, key in enumerate(keys)]
        text = f"SELECT {', '.join(listed + aggregates)} FROM {source} {where}"
        if keys:
            text += " GROUP BY " + self.random.choice((", ".join(f"k{n}" for n in range(len(keys))), "ALL"))
            if self.random.random() < 0.2:
                text += f" HAVING {names[0]} > {self.random.choice(_NUMBERS)}"
        if self.random.random() < 0.2:
            text += f" ORDER BY {self.random.choice(['1', 'a0', 'a0 DESC NULLS LAST'])} LIMIT 3"
        return text

    def _where(self, table: str) -> str:
        return f"WHERE {self._condition(table, 2)}" if self.random.random() < 0.6 else ""

    def _per_unit(self, table: str) -> str:
        unit = self._unit(table)
        inner = self.random.choice(("COUNT", "SUM", "AVG", "MIN", "MAX"))
        value = self._value(table, 1)
        inside = f"SELECT {unit}, {inner}({value}) AS v FROM {quoted(table)} {self._where(table)} GROUP BY {unit}"
        outer = self.random.choice(
            (
                "COUNT(*)",
                "COUNT(v)",
                "SUM(GREATEST(0, LEAST(v, 9)))",
                "AVG(GREATEST(-5, LEAST(v, 5)))",
                "MEDIAN(GREATEST(0, LEAST(v, 9)))",
            )
        )
        where = self.random.choice(("", "WHERE v > 0", "WHERE v IS NULL", "WHERE v = 7 OR v < -1"))
        if self.random.random() < 0.3:
            return f"WITH per_unit AS ({inside}) SELECT {outer} AS a0 FROM per_unit {where}"
        if self.random.random() < 0.3:
            return f"SELECT LEAST(v, 5) AS k0, COUNT(*) AS a0 FROM ({inside}) AS per_unit {where} GROUP BY k0"
        return f"SELECT {outer} AS a0 FROM ({inside}) AS per_unit {where}"

    def _joined(self, table: str) -> str:
        unit = self._unit(table)
        column = quoted(self._column(table))
        side = self.random.choice(("JOIN", "LEFT JOIN"))
        aggregate = self.random.choice(("COUNT(*)", f"COUNT(b.{column})", f"COUNT(DISTINCT b.{column})"))
        return f"SELECT {aggregate} AS a0 FROM {quoted(table)} AS a {side} {quoted(table)} AS b USING ({unit})"

    def _union(self, table: str) -> str:
        column = quoted(self._column(table))
        part = f"SELECT {column} FROM {quoted(table)} {self._where(table)}"
        return f"SELECT COUNT({column}) AS a0 FROM ({part} UNION ALL {part}) AS both"

    # Parts.

    def _unit(self, table: str) -> str:
        unit = self.tables[table]["unit"]
        return quoted(unit) if isinstance(unit, str) else "id"

    def _columns(self, table: str, *kinds: str) -> list[str]:
        columns = self.tables[table]["columns"]
        return [name for name, column in columns.items() if not kinds or column["type"] in kinds]

    def _column(self, table: str, *kinds: str) -> str:
        return self.random.choice(self._columns(table, *kinds) or ["id"])

    def _is_bounded(self, table: str, column: str) -> bool:
        return "lower" in self.tables[table]["columns"].get(column, {})

    def _value(self, table: str, depth: int) -> str:
        """A value of any type."""
        kinds = [kind for kind in ("int", "float", "text", "bool", "date") if self._columns(table, kind)]
        kind = self.random.choice(kinds or ["int"])
        if kind in ("int", "float"):
            return self._number(table, depth)
        return (
            self._text(table, depth)
            if kind == "text"
            else self._date(table)
            if kind == "date"
            else self._condition(table, 1)
        )

    def _number(self, table: str, depth: int) -> str:
        if depth <= 0:
            return self._atom(table)
        x = self._number(table, depth - 1)
        y = self._number(table, depth - 1)
        clamped = f"GREATEST(-9, LEAST({x}, 9))"
        return self.random.choice(
            (
                x,
                x,
                clamped,
                clamped,
                f"ABS({clamped})",
                f"{clamped} + 1",
                f"({clamped} * {clamped})",
                f"({x} / {y})",
                f"({clamped} - GREATEST(0, LEAST({y}, 3)))",
                f"MOD({x}, 3)",
                f"({x} % GREATEST(-2, LEAST({y}, 2)))",
                f"POWER({clamped}, 2)",
                f"SIGN({x})",
                f"FLOOR({clamped})",
                f"CEIL({x})",
                f"SQRT({clamped})",
                f"LN({clamped})",
                f"EXP({clamped})",
                f"COALESCE({x}, 0)",
                f"IFNULL({x}, {y})",
                f"CASE WHEN {self._condition(table, depth - 1)} THEN {x} ELSE {y} END",
                f"CAST({x} AS DOUBLE)",
                f"-{clamped}",
                f"NULLIF({x}, 0)",
                f"GREATEST({x}, {y})",
                f"({x} // 2)",
                f"{x}::int",
            )
        )

    def _atom(self, table: str) -> str:
        """A number without arithmetic."""
        choices = [quoted(name) for name in self._columns(table, "int", "float")] * 3
        choices += [f"LENGTH({quoted(name)})" for name in self._columns(table, "text")]
        choices += [f"{quoted(name)}::int" for name in self._columns(table, "bool")]
        for name in self._columns(table, "date"):
            part = self.random.choice(("YEAR", "QUARTER", "MONTH", "DAY", "ISODOW"))
            choices += [f"{part}({quoted(name)})", f"DATE_DIFF('day', DATE '2020-01-01', {quoted(name)})"]
        choices.append(self.random.choice(_NUMBERS))
        return self.random.choice(choices)

    def _text(self, table: str, depth: int) -> str:
        column = quoted(self._column(table, "text"))
        if depth <= 0:
            return column
        x = self._text(table, depth - 1)
        return self.random.choice(
            (
                x,
                x,
                f"LOWER({x})",
                f"UPPER({x})",
                f"TRIM({x})",
                f"SUBSTRING({x}, 1, 2)",
                f"SUBSTR({x}, 3)",
                f"{x} || '!'",
                f"CONCAT({x}, {column})",
                f"COALESCE({x}, 'none')",
                f"{x}::text",
            )
        )

    def _date(self, table: str) -> str:
        column = quoted(self._column(table, "date"))
        part = self.random.choice(_PARTS)
        return self.random.choice(
            (
                column,
                f"DATE_TRUNC('{part}', {column})",
                f"GREATEST({column}, DATE '2025-01-01')",
                f"COALESCE({column}, DATE '2025-01-01')",
            )
        )

    def _condition(self, table: str, depth: int) -> str:
        if depth > 0 and self.random.random() < 0.4:
            one, other = self._condition(table, depth - 1), self._condition(table, depth - 1)
            return self.random.choice((f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})"))
        sign = self.random.choice(("=", "<>", "<", "<=", ">", ">="))
        choices = [
            f"{self._number(table, min(depth, 1))} {sign} {self.random.choice(_NUMBERS)}",
            f"{self._number(table, min(depth, 1))} {sign} {self._number(table, min(depth, 1))}",
        ]
        some: Sequence[str] = self.random.sample(_NUMBERS, 3)
        choices.append(
            f"{self._number(table, min(depth, 1))} {self.random.choice(('IN', 'NOT IN'))} ({', '.join(some)})"
        )
        choices.append(f"{self._number(table, min(depth, 1))} BETWEEN {some[0]} AND {some[1]}")
        choices.append(f"{quoted(self._column(table))} IS {self.random.choice(('', 'NOT '))}NULL")
        if self._columns(table, "text"):
            x = self._text(table, min(depth, 1))
            like = self.random.choice(("LIKE", "NOT LIKE", "ILIKE"))
            choices += [f"{x} = {self.random.choice(_TEXTS)}", f"{x} {like} {self.random.choice(_PATTERNS)}"]
            choices += [
                f"{x} IN ({', '.join(self.random.sample(_TEXTS, 3))})",
                f"{x} <> {self._text(table, min(depth, 1))}",
            ]
        if self._columns(table, "date"):
            choices += [
                f"{self._date(table)} {sign} {self.random.choice(_DATES)}",
                f"{self._date(table)} {sign} {self._date(table)}",
            ]
        if self._columns(table, "bool"):
            choices += [quoted(self._column(table, "bool"))] * 2
        return self.random.choice(choices)

    def _aggregate(self, table: str) -> str:
        x = f"GREATEST(-9, LEAST({self._number(table, 2)}, 9))"
        any_column = quoted(self._column(table))
        choices = [
            "COUNT(*)",
            f"COUNT({self._value(table, 2)})",
            f"COUNT(DISTINCT {any_column})",
            f"COUNT(DISTINCT {self._unit(table)})",
            f"SUM({x})",
            f"SUM({x})",
            f"AVG({x})",
            f"AVG({x})",
            f"VARIANCE({x})",
            f"STDDEV_POP({x})",
            f"MEDIAN({x})",
            f"MIN({x})",
            f"MAX({x})",
            f"QUANTILE({x}, 0.9)",
            f"GEOMEAN(GREATEST(1, LEAST({x}, 5)))",
            f"CORR({x}, {x})",
            f"COUNT(*) FILTER (WHERE {self._condition(table, 1)})",
            f"SUM({x}) FILTER (WHERE {self._condition(table, 1)})",
            f"MODE({any_column})",
            f"TOP_K({any_column}, 2)",
            f"COUNT(DISTINCT {self._value(table, 1)})",
        ]
        for name in self._columns(table):
            if self._is_bounded(table, name):
                wrap = self.random.choice(("MIN", "MAX", "MEDIAN", "SUM", "AVG"))
                choices += [f"{wrap}({quoted(name)})"] * 2
        return self.random.choice(choices)

    def _key(self, table: str) -> str:
        choices = [
            quoted(self._column(table)),
            quoted(self._column(table)),
            f"CASE WHEN {self._condition(table, 1)} THEN 1 ELSE 0 END",
        ]
        choices.append(f"FLOOR(GREATEST(0, LEAST({self._number(table, 1)}, 9)) / 3)")
        if self._columns(table, "text"):
            choices += [self._text(table, 2)] * 2
        if self._columns(table, "date"):
            choices += [self._date(table), f"YEAR({quoted(self._column(table, 'date'))})"]
        if self._columns(table, "int"):
            choices += [f"MOD({quoted(self._column(table, 'int'))}, 5)"]
        return self.random.choice(choices)


def toml_of(policy: Mapping[str, Any]) -> str:
    """A policy as TOML."""
    import json

    def value_of(value: Any) -> str:
        if isinstance(value, Mapping):
            return "{ " + ", ".join(f"{key_of(key)} = {value_of(inner)}" for key, inner in value.items()) + " }"
        if isinstance(value, list):
            return "[" + ", ".join(map(value_of, value)) + "]"
        return (
            value.isoformat()
            if isinstance(value, datetime.date)
            else key_of(value)
            if isinstance(value, str)
            else json.dumps(value)
        )

    def key_of(key: str) -> str:
        return json.dumps(key, ensure_ascii=False).replace("\x7f", "\\u007f")

    return "".join(f"{key_of(key)} = {value_of(value)}\n" for key, value in policy.items())
