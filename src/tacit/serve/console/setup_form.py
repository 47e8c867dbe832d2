"""The owner's form, read: what they chose for a policy, and what could not be read of it.

>>> tables = {"t": [SourceColumn("age", Type.INT)]}
>>> form = SetupForm({"person": ["row"], "epsilon": ["2"], "analyst": ["ada"], "use-0-0": ["1"], "lower-0-0": ["0"]})
>>> choices, problems = read_choices(tables, form)
>>> choices.epsilon, problems
(Fraction(2, 1), {'0-0': 'write two whole numbers, the smaller first, such as 0 100'})
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar
from urllib.parse import parse_qsl

from tacit.arithmetic import format_decimal
from tacit.engines.source_columns import SourceColumn
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.policy.model import ROW_UNIT, Type
from tacit.policy.owner_choices import (
    BOUNDED,
    ColumnName,
    list_left_out,
    read_analyst,
    read_bound_fields,
    read_budget,
    read_keys,
    read_person,
)
from tacit.policy.propose import Tables, propose_person
from tacit.policy.template import StarterChoices, leave_out_empty_tables

_FIELDS = 20_000  # of a form: five for each of the columns that a wide table has
Value = TypeVar("Value")


@dataclass(frozen=True)
class SetupForm:
    """The fields of a form by name, each with all that was given for it."""

    fields: Mapping[str, Sequence[str]]

    def text(self, name: str) -> str:
        """What was given for a field, without spaces around it; nothing where it is not there."""
        return self.fields.get(name, ("",))[0].strip()

    def exact(self, name: str) -> str:
        """What was given for a field as it is: names of columns may have spaces around them."""
        return self.fields.get(name, ("",))[0]

    def has(self, name: str) -> bool:
        """Whether a field is there, as that of a box that is ticked."""
        return name in self.fields


def parse_form(body: bytes) -> SetupForm:
    """The form of a request, or Refused."""
    fields: dict[str, list[str]] = {}
    try:
        for name, value in parse_qsl(body.decode("utf-8"), True, max_num_fields=_FIELDS, errors="strict"):
            fields.setdefault(name, []).append(value)
    except ValueError:
        raise Refused(ErrorCode.PROTOCOL, "the form cannot be read", fix="use the form of the page") from None
    return SetupForm(fields)


def number_columns(tables: Tables) -> Iterator[tuple[str, str, SourceColumn]]:
    """The columns of all tables that can be declared, each with its number in the form and its table."""
    for first, (table, columns) in enumerate(tables.items()):
        for second, column in enumerate(columns):
            if isinstance(column.kind, Type):
                yield f"{first}-{second}", table, column


def fill_in(tables: Tables, choices: StarterChoices) -> SetupForm:
    """The form as it is first shown: with the proposals, and no bounds and keys, which are the owner's to write."""
    left_out = list_left_out(tables)
    fields = {
        "person": [choices.person or propose_person(tables) or ROW_UNIT],
        "epsilon": [format_decimal(choices.epsilon)],
        "analyst": [choices.analyst],
        "ask": [format_decimal(choices.epsilon / 4)],
    }
    for number, table, column in number_columns(tables):
        if (table, column.name) not in left_out:
            fields[f"use-{number}"] = ["1"]
    return SetupForm(fields)


def restore_keys(ticked: Sequence[str], offered: Sequence[str]) -> tuple[str, ...]:
    """The offered keys that are ticked, as they are in the data; or ParameterError where one is not offered.

    A browser sends every line break as CR LF, and keys that differ in these alone cannot be told apart.

    >>> restore_keys(["a", "b\\r\\nc"], ["a", "b\\nc"])
    ('a', 'b\\nc')
    """
    known: dict[str, list[str]] = {}
    for key in offered:
        known.setdefault(_with_one_line_break(key), []).append(key)
    found = [known.get(_with_one_line_break(given), []) for given in ticked]
    if any(len(keys) != 1 for keys in found):
        what = "a key that is ticked is not offered for this person: untick it, or type it if everybody may know it"
        raise ParameterError("keys", what, fix="untick it")
    return tuple(keys[0] for keys in found)


def _with_one_line_break(key: str) -> str:
    return key.replace("\r\n", "\n").replace("\r", "\n")


def read_choices(
    tables: Tables, form: SetupForm, offer: Callable[[str, ColumnName], Sequence[str]] | None = None
) -> tuple[StarterChoices, dict[str, str]]:
    """What the owner chose, and for each field that cannot be read, or column by its number, what to write.

    `offer` gives the keys that are offered for a column where a person's column is chosen. **Rule.** A key that is
    ticked is one of these: the page may have offered it for another person, whose rows are counted differently. A key
    that is typed may be any. What was written for a column that is not ticked is not read: it is not chosen.
    """
    problems: dict[str, str] = {}

    def read(field: str, function: Callable[[], Value], otherwise: Value) -> Value:
        try:
            return function()
        except ParameterError as error:
            problems[field] = error.what.removeprefix(f"{error.name}: ")
            return otherwise

    person = form.exact("person") or form.exact("another")
    if not form.has("person") or not person:
        problems["person"] = "choose who is protected"
    chosen_person = ROW_UNIT if "person" in problems else read("person", lambda: read_person(tables, person), ROW_UNIT)
    left_out = list_left_out(tables)
    none: tuple[str, ...] = ()
    listed, unlisted, bounds, keys = set(), set(), {}, {}
    for number, table, column in number_columns(tables):
        here, is_used = (table, column.name), form.has(f"use-{number}")
        if is_used and here in left_out:
            listed.add(here)
        elif not is_used and here not in left_out:
            unlisted.add(here)
        kind = column.kind
        assert isinstance(kind, Type)
        if not is_used:
            continue
        if kind in BOUNDED:
            ends = form.text(f"lower-{number}"), form.text(f"upper-{number}")
            given = read(number, partial(read_bound_fields, kind, *ends), None)
            if given is not None:
                bounds[here] = given
        elif kind is Type.TEXT:
            ticked = form.fields.get(f"key-{number}", ())
            if offer is not None and ticked:
                ticked = read(number, partial(restore_keys, ticked, offer(chosen_person, here)), none)
            typed = read(number, partial(read_keys, form.text(f"keys-{number}")), none)
            if found := tuple(dict.fromkeys([*ticked, *typed])):
                keys[here] = found
    choices = StarterChoices(
        chosen_person,
        read("epsilon", lambda: read_budget(form.text("epsilon")), StarterChoices.epsilon),
        read("analyst", lambda: read_analyst(form.text("analyst")), StarterChoices.analyst),
        frozenset(listed),
        bounds,
        keys,
        frozenset(unlisted),
    )
    return leave_out_empty_tables(tables, choices), problems
