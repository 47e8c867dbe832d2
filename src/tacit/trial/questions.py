"""Questions from a policy alone: every aggregate and every clause that it allows, once for each private table.

>>> from tacit.policy.load import load
>>> flats = {"unit": "row", "columns": {"rent": {"type": "int", "lower": 0, "upper": 9}}}
>>> policy = load({"privacy": {"epsilon": 1}, "tables": {"flats": flats}, "analysts": {"ada": {"epsilon": 1}}})
>>> generate_questions(policy)[:3]
('SELECT COUNT(*) AS n FROM flats', 'SELECT COUNT(rent) AS n FROM flats', 'SELECT SUM(rent) AS x FROM flats')
"""

from __future__ import annotations

from collections.abc import Iterator

from tacit.aggregates.registry import read_question
from tacit.errors import Refused
from tacit.plan.planner import Planner
from tacit.plan.question import Question
from tacit.policy.model import ROW_UNIT, Column, Policy, Table
from tacit.query.types import NUMERIC_TYPES, Type

_MOST_KEYS = 20  # public keys of one question; more make the answer long and tell no more
_NUMBERS = ("SUM({})", "AVG({})", "STDDEV({})", "VAR_SAMP({})", "MEDIAN({})", "MIN({})", "MAX({})", "QUANTILE({}, 0.9)")


def generate_questions(policy: Policy) -> tuple[str, ...]:
    """The questions that the policy answers, in an order that starts with the simplest."""
    asked = dict.fromkeys(text for table in policy.tables if not table.public for text in _about(policy, table))
    return tuple(text for text in asked if _is_answered(text, policy))


def _is_answered(text: str, policy: Policy) -> bool:
    """Whether a question is planned rather than refused."""
    try:
        Planner(policy).plan(Question(text, epsilon=1))
    except Refused:
        return False
    return True


def _about(policy: Policy, table: Table) -> Iterator[str]:
    source = quote_identifier(table.name)
    numbers = [quote_identifier(c.name) for c in table.columns if c.type in NUMERIC_TYPES and c.lower is not None]
    listed = [quote_identifier(c.name) for c in table.columns if _lists(c)]
    private = [quote_identifier(c.name) for c in table.columns if c.type is Type.TEXT and c.values is None]
    conditions = [quote_identifier(c.name) for c in table.columns if c.type is Type.BOOL]
    dates = [quote_identifier(c.name) for c in table.columns if c.type is Type.DATE and c.lower is not None]
    times = [quote_identifier(c.name) for c in table.columns if c.type is Type.TIMESTAMP and c.lower is not None]
    yield f"SELECT COUNT(*) AS n FROM {source}"
    if table.columns:
        yield f"SELECT COUNT({quote_identifier(table.columns[0].name)}) AS n FROM {source}"
    yield from _of_units(table, source)
    for one in numbers[:1]:
        for aggregate in _NUMBERS:
            yield f"SELECT {aggregate.format(one)} AS x FROM {source}"
        yield f"SELECT 100 * SUM({one}) / COUNT(*) AS x FROM {source}"
        for condition in conditions[:1]:
            yield f"SELECT SUM({one}) AS x FROM {source} WHERE {condition}"
    for one in numbers[1:3]:
        yield f"SELECT SUM({one}) AS x, COUNT({one}) AS n FROM {source}"
    for day in dates[:1]:
        yield f"SELECT MEDIAN({day}) AS x FROM {source}"
    for time in times[:1]:
        yield f"SELECT MEDIAN({time}) AS x FROM {source}"
        yield f"SELECT HOUR({time}) AS h, COUNT(*) AS n FROM {source} GROUP BY 1"
        yield f"SELECT DATE_TRUNC('month', {time}) AS m, COUNT(*) AS n FROM {source} GROUP BY 1"
        yield f"SELECT SUM(DATE_DIFF('hour', {time}, {time})) AS x FROM {source}"
    for key in listed[:1]:
        yield f"SELECT MODE({key}) AS x FROM {source}"
        yield f"SELECT TOP_K({key}, 2) AS x FROM {source}"
        yield from _grouped_questions(source, key, numbers[:1], conditions[:1])
    if len(listed) > 1:
        yield f"SELECT {listed[0]}, {listed[1]}, COUNT(*) AS n FROM {source} GROUP BY {listed[0]}, {listed[1]}"
    for key in private[:1]:
        yield f"SELECT {key}, COUNT(*) AS n FROM {source} GROUP BY {key}"
        for one in numbers[:1]:
            yield f"SELECT {key}, SUM({one}) AS x FROM {source} GROUP BY {key}"
    yield from _join_clauses(policy, table, source)


def _lists(column: Column) -> bool:
    return column.values is not None and len(column.values) <= _MOST_KEYS and column.type is not Type.BOOL


def _grouped_questions(source: str, key: str, numbers: list[str], conditions: list[str]) -> Iterator[str]:
    yield f"SELECT {key}, COUNT(*) AS n FROM {source} GROUP BY {key}"
    yield f"SELECT {key}, COUNT(*) AS n FROM {source} GROUP BY {key} HAVING COUNT(*) > 5"
    yield f"SELECT {key}, COUNT(*) AS n FROM {source} GROUP BY {key} ORDER BY n DESC LIMIT 1"
    for condition in conditions:
        yield f"SELECT {key}, COUNT(*) FILTER (WHERE {condition}) AS n FROM {source} GROUP BY {key}"
    for one in numbers:
        yield f"SELECT {key}, SUM({one}) AS x FROM {source} GROUP BY {key}"
        yield f"SELECT {key}, AVG({one}) AS x FROM {source} GROUP BY {key}"
        yield f"SELECT {key}, MEDIAN({one}) AS x FROM {source} GROUP BY {key}"


def _of_units(table: Table, source: str) -> Iterator[str]:
    """Questions about units rather than rows."""
    if not isinstance(table.unit, str) or table.unit == ROW_UNIT:
        return
    unit = quote_identifier(table.unit)
    yield f"SELECT COUNT(DISTINCT {unit}) AS n FROM {source}"
    each = f"SELECT {unit}, COUNT(*) AS m FROM {source} GROUP BY {unit}"
    yield f"WITH each AS ({each}) SELECT COUNT(*) AS n FROM each WHERE m > 1"


def _join_clauses(policy: Policy, table: Table, source: str) -> Iterator[str]:
    """Joins to the public tables that have a unique column of a name that the table has too."""
    for other in policy.tables:
        for column in other.columns if other.public else ():
            if column.unique and table.column(column.name) is not None:
                tables = f"{source} JOIN {quote_identifier(other.name)} USING ({quote_identifier(column.name)})"
                yield f"SELECT COUNT(*) AS n FROM {tables}"
                for number in other.columns:
                    if number.type in NUMERIC_TYPES and number.lower is not None and table.column(number.name) is None:
                        yield f"SELECT SUM({quote_identifier(number.name)}) AS x FROM {tables}"


def quote_identifier(text: str) -> str:
    """A name as SQL has it: in quotes where it could be read as anything else."""
    quoted = '"' + text.replace('"', '""') + '"'
    if not text.isascii() or not text.isidentifier():
        return quoted
    try:
        read_question(f"SELECT SUM({text}) AS x FROM {text} WHERE {text} > 1 GROUP BY {text}")
    except Refused:
        return quoted
    return text
