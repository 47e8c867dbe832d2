"""A crowd to attack, from a policy alone: people with a secret bit, known to the attacker by their public columns.

The attacker knows everyone's listed and bounded columns, and writes any subset of people as a condition on them, as
Cohen and Nissim did against Diffix. Each person has a number of their own, made of those columns, such as `age * 3 +
CASE sex ...`; a subset is a list of such numbers.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.errors import ParameterError
from tacit.policy.model import ROW_UNIT, Column, Policy, Table
from tacit.query.types import NUMERIC_TYPES, Type
from tacit.sampling.bits import ReplayBits
from tacit.sampling.uniform import draw_below
from tacit.trial import generate
from tacit.trial.links import column_types, unit_keys
from tacit.trial.neighbors import ARROW_TYPES, SyntheticDatabase, empty_tables
from tacit.trial.questions import quote_identifier

MIN_PEOPLE, MOST = 8, 1_000  # people; a subset, or its complement, has to fit the longest list that a question may hold
_LISTED = 50  # values of a list that are written out
_WIDEST = 10**5  # numbers that one column may stand for
_ROOM = 2  # numbers for each person, at least

Bits = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class AttackTarget:
    """Who is attacked: a table in which each person has one row.

    `secret` is the condition that says the bit; `number` the expression that tells people apart, `numbers` everyone's.
    """

    table: str
    secret: str
    known: tuple[str, ...]
    number: str
    numbers: tuple[int, ...]
    numbered: int  # the numbers go from 0 to this, which nobody has
    truth: Bits
    database: SyntheticDatabase

    @property
    def people(self) -> int:
        """How many there are."""
        return len(self.numbers)

    def count(self, subset: Bits) -> str:
        """The question of how many in a subset have the secret bit."""
        return f"SELECT COUNT(*) AS n FROM {self.table} WHERE {self.secret}{self.among(subset)}"

    def among(self, subset: Bits) -> str:
        """The subset as a further condition: a list of numbers, or of those left out where these are fewer."""
        inside = [number for number, wanted in zip(self.numbers, subset, strict=True) if wanted]
        outside = [number for number, wanted in zip(self.numbers, subset, strict=True) if not wanted]
        if not outside:
            return ""
        if not inside:
            return f" AND {self.number} = {self.numbered}"
        way, some = ("IN", inside) if len(inside) <= len(outside) else ("NOT IN", outside)
        return f" AND {self.number} {way} ({', '.join(map(str, some))})"

    def each(self) -> str:
        """The question that counts the bit for everyone at once, in a group for each number."""
        return (
            f"SELECT {self.number} AS person, COUNT(*) FILTER (WHERE {self.secret}) AS n "
            f"FROM {self.table} GROUP BY {self.number}"
        )


@dataclass(frozen=True)
class _PublicDigit:
    """A public column as a digit: an expression from 0 to size - 1, and the value that each digit stands for."""

    column: Column
    text: str
    size: int

    def value(self, digit: int) -> Any:
        if self.column.values is not None:
            return self.column.values[digit]
        assert self.column.lower is not None
        day = int(self.column.lower) + digit
        return datetime.date.fromordinal(day) if self.column.type is Type.DATE else day


def generate_target(policy: Policy, people: int = 100, seed: int = 0) -> AttackTarget:
    """A crowd of so many for the first table that has a secret and columns enough to tell them apart."""
    if not MIN_PEOPLE <= people <= MOST:
        raise ParameterError("people", f"{people} is no crowd to attack", fix=f"choose from {MIN_PEOPLE} to {MOST}")
    most = 0
    for table in policy.tables:
        if table.public or not isinstance(table.unit, str):
            continue
        for column, condition in _secrets(table):
            known, size = _identifying_columns(table, column, people)
            if size >= _ROOM * people:
                return _crowd(policy, table, column, condition, known, people, seed)
            most = max(most, size // _ROOM)
    what = f"no table has a secret and columns that tell {people} people apart: {most} is the most"
    raise ParameterError("people", what, fix="attack fewer people, or a policy with more listed or bounded columns")


def _secrets(table: Table) -> Iterator[tuple[Column, str]]:
    """Columns whose value could be a secret, and the condition that says it: true or false before others."""
    for column in table.columns:
        if column.type is Type.BOOL:
            yield column, quote_identifier(column.name)
    for column in table.columns:
        if column.values is not None and len(column.values) > 1 and column.type is Type.TEXT:
            yield column, f"{quote_identifier(column.name)} = {_text(str(column.values[0]))}"
    for column in table.columns:
        if column.type in NUMERIC_TYPES and column.lower is not None and column.upper is not None:
            middle = int((column.lower + column.upper) // 2) + 1
            if middle <= column.upper and column.values is None:
                yield column, f"{quote_identifier(column.name)} >= {middle}"


def _identifying_columns(table: Table, secret: Column, people: int) -> tuple[tuple[_PublicDigit, ...], int]:
    """The first public columns that together tell so many people apart, and how many they do."""
    found: list[_PublicDigit] = []
    size = 1
    for column in table.columns:
        digit = None if column == secret or column.name == table.unit else _digit(column)
        if digit is not None and size < _ROOM * people:
            found.append(digit)
            size *= digit.size
    return tuple(found), size


def _digit(column: Column) -> _PublicDigit | None:
    """A column as a digit, where it is one of few values that everybody knows."""
    said = quote_identifier(column.name)
    if column.values is not None:
        if column.type not in {Type.TEXT, Type.INT} or not 1 < len(column.values) <= _LISTED:
            return None
        cases = [(v if column.type is Type.INT else _text(str(v)), i) for i, v in enumerate(column.values)]
        return _PublicDigit(column, f"CASE {said} {' '.join(f'WHEN {v} THEN {i}' for v, i in cases)} END", len(cases))
    if column.type not in {Type.INT, Type.DATE} or column.lower is None or column.upper is None:
        return None
    size = int(column.upper - column.lower) + 1
    if not 1 < size <= _WIDEST:
        return None
    if column.type is Type.DATE:
        first = datetime.date.fromordinal(int(column.lower)).isoformat()
        return _PublicDigit(column, f"DATE_DIFF('day', DATE '{first}', {said})", size)
    return _PublicDigit(column, said if column.lower == 0 else f"({said} - {int(column.lower)})", size)


def _crowd(
    policy: Policy,
    table: Table,
    secret: Column,
    condition: str,
    known: tuple[_PublicDigit, ...],
    people: int,
    seed: int,
) -> AttackTarget:
    """People with different numbers, and fair bits that do not depend on them."""
    bits = ReplayBits(f"tacit attacks {seed}".encode())
    text = known[0].text
    for digit in known[1:]:
        text = f"{text if text.isidentifier() else f'({text})'} * {digit.size} + {digit.text}"
    size = int(np.prod([digit.size for digit in known]))
    numbers: list[int] = []
    taken: set[int] = set()
    while len(numbers) < people:
        number = draw_below(size, bits)
        if number not in taken:
            taken.add(number)
            numbers.append(number)
    truth = [draw_below(2, bits) == 1 for _ in numbers]
    rows = []
    for place, (number, bit) in enumerate(zip(numbers, truth, strict=True)):
        row = dict.fromkeys(column_types(policy, table)) | {c.name: generate.ordinary(c, bits) for c in table.columns}
        rest = number
        for digit in reversed(known):
            rest, own = divmod(rest, digit.size)
            row[digit.column.name] = digit.value(own)
        row[secret.name] = _secret(secret, bit)
        if table.unit != ROW_UNIT:
            assert isinstance(table.unit, str)
            row |= unit_keys(policy, table, place + 1)
        rows.append(row)
    kinds = column_types(policy, table)
    own_rows = pa.table({key: pa.array([row[key] for row in rows], ARROW_TYPES[kind]) for key, kind in kinds.items()})
    database = SyntheticDatabase(empty_tables(policy) | {table.name: own_rows}, f"{people} people in {table.name}")
    return AttackTarget(
        quote_identifier(table.name),
        condition,
        tuple(digit.column.name for digit in known),
        text,
        tuple(numbers),
        size,
        np.array(truth),
        database,
    )


def _secret(column: Column, bit: bool) -> Any:
    """A value of the secret column that has the bit, or has it not."""
    if column.type is Type.BOOL:
        return bit
    if column.values is not None:
        return column.values[0 if bit else 1]
    bound = column.upper if bit else column.lower
    assert bound is not None
    return int(bound) if column.type is Type.INT else float(bound)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
