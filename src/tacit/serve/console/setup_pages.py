"""The owner's page, laid out: who is protected, the budget, each column with what was found, and what it all means."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from tacit.engines.left_out import LeftOut
from tacit.engines.source_rows import MOST_ROWS, ColumnFacts
from tacit.policy.check import find_name_problem
from tacit.policy.model import ROW_UNIT, Type
from tacit.policy.owner_choices import BOUNDED, describe_repeats, list_left_out, select_tables
from tacit.policy.propose import find_what_names_somebody, is_identifier_name, propose_person
from tacit.policy.template import StarterChoices
from tacit.serve.console.charts import make_element
from tacit.serve.console.setup_form import SetupForm, number_columns, read_choices
from tacit.serve.console.setup_preview import SetupSource, count_holders, describe_choice, list_groupings, make_preview

FEWEST_PEOPLE = 20  # who hold a value that is offered as a public key; a rarer one must be typed by who knows it
_OFFERED = 30  # different values of a text, at most, that are offered as keys
_PEOPLE_OFFERED = 6  # columns that are offered as the person's, before the list of all
_BAR_HEIGHT = 34  # pixels


@dataclass(frozen=True)
class PersonOption:
    """A column that may say whose row it is."""

    value: str
    label: str
    words: str


@dataclass(frozen=True)
class KeyOption:
    """A value of a text that may become a public key."""

    value: str
    people: str
    is_chosen: bool


@dataclass(frozen=True)
class ColumnChoice:
    """A column with what was found, what is proposed, what is chosen, and what that means."""

    number: str
    name: str
    kind: str
    reason: str  # why it is left out unless the owner lists it
    is_named: bool
    is_bounded: bool
    has_keys: bool
    lower: str
    upper: str
    example: tuple[str, str]
    keys: tuple[KeyOption, ...]
    rare: int  # values that are not offered, because too few people hold them
    typed_keys: str
    found: str
    drawing: Markup
    effect: str
    problem: str


@dataclass(frozen=True)
class TableChoice:
    """A table with its columns, and the columns that cannot be declared."""

    name: str
    rows: str
    is_reached: bool
    columns: tuple[ColumnChoice, ...]
    unreadable: tuple[str, ...]


class SetupPages:
    """Works out the page for a source. What was found of a column is looked at once."""

    def __init__(self, source: SetupSource) -> None:
        self.source = source
        self._facts: dict[tuple[str, str], ColumnFacts] = {}
        self._holders: dict[tuple[str, tuple[str, str]], dict[str, int]] = {}
        self._people: tuple[PersonOption, ...] | None = None

    def view(self, form: SetupForm) -> tuple[dict[str, Any], StarterChoices]:
        """All that the page shows for a form, and what it chose."""
        choices, problems = read_choices(self.source.tables, form, self._list_offered)
        groupings = list_groupings(self.source, choices)
        group = form.exact("group")
        if group not in groupings:
            group = groupings[0] if groupings else ""
        shown = {
            "source": self.source,
            "people": self._list_people(),
            "others": self._list_other_columns(),
            "form": form,
            "problems": problems,
            "tables": self._list_tables(form, choices, problems),
            "groupings": groupings,
            "group": group,
            "preview": None if problems else make_preview(self.source, choices, group, form.text("ask")),
            "most_rows": f"{MOST_ROWS:,}",
            "fewest": FEWEST_PEOPLE,
        }
        return shown, choices

    def _list_people(self) -> tuple[PersonOption, ...]:
        if self._people is None:
            names = dict.fromkeys(
                column.name for _, _, column in number_columns(self.source.tables) if is_identifier_name(column.name)
            )
            proposed = propose_person(self.source.tables)
            ordered = sorted(names, key=lambda name: name != proposed)[:_PEOPLE_OFFERED]
            found = [PersonOption(name, name, self._describe_person(name, name == proposed)) for name in ordered]
            found.append(PersonOption(ROW_UNIT, "Each row is one person", "Only where nobody has two rows."))
            self._people = tuple(found)
        return self._people

    def _describe_person(self, name: str, is_proposed: bool) -> str:
        repeats = (
            describe_repeats(self.source.tables, name).removeprefix(", with ").removesuffix(" (for your eyes only)")
        )
        words = f"{repeats[:1].upper()}{repeats[1:]}." if repeats else "Nearly every row has a value of its own."
        if self.source.rows is None:
            words = ""
        return f"Proposed. {words}".strip() if is_proposed else words

    def _list_other_columns(self) -> list[str]:
        offered = {option.value for option in self._list_people()}
        names = dict.fromkeys(column.name for _, _, column in number_columns(self.source.tables))
        return [name for name in names if name not in offered]

    def _list_tables(self, form: SetupForm, choices: StarterChoices, problems: dict[str, str]) -> list[TableChoice]:
        reached = select_tables(self.source.tables, choices.person or ROW_UNIT)
        left_out = list_left_out(self.source.tables)
        columns: dict[str, list[ColumnChoice]] = {table: [] for table in self.source.tables}
        for number, table, column in number_columns(self.source.tables):
            if find_name_problem(column.name):
                continue
            kind = column.kind
            assert isinstance(kind, Type)
            facts = self._look(table, column.name)
            is_telling = find_what_names_somebody(column) is None
            keys, rare = (
                self._offer_keys(form, choices, number, (table, column.name), kind, facts) if is_telling else ((), 0)
            )
            columns[table].append(
                ColumnChoice(
                    number=number,
                    name=column.name,
                    kind=str(kind),
                    reason=left_out.get((table, column.name), ""),
                    is_named=form.has(f"use-{number}"),
                    is_bounded=kind in BOUNDED,
                    has_keys=kind is Type.TEXT,
                    lower=form.text(f"lower-{number}"),
                    upper=form.text(f"upper-{number}"),
                    example=("YYYY-MM-DD",) * 2 if kind is Type.DATE else ("none", "none"),
                    keys=keys,
                    rare=rare,
                    typed_keys=form.text(f"keys-{number}"),
                    found=_describe_facts(facts, kind),
                    drawing=_draw_facts(facts, column.name, kind) if is_telling else Markup(),
                    effect=describe_choice(self.source, choices, table, column.name, kind),
                    problem=problems.get(number, ""),
                )
            )
        rows = {} if self.source.rows is None else self.source.rows.rows
        return [
            TableChoice(
                table,
                f"{rows[table]:,} rows{' looked at' if rows[table] == MOST_ROWS else ''}" if table in rows else "",
                table in reached,
                tuple(columns[table]),
                tuple(
                    f"{each.name}: {each.kind}" if isinstance(each.kind, LeftOut) else f"column {place}: its name"
                    for place, each in enumerate(self.source.tables[table], 1)
                    if isinstance(each.kind, LeftOut) or find_name_problem(each.name)
                ),
            )
            for table in self.source.tables
        ]

    def _look(self, table: str, column: str) -> ColumnFacts | None:
        if self.source.rows is None:
            return None
        if (table, column) not in self._facts:
            self._facts[table, column] = self.source.rows.describe_column(table, column)
        return self._facts[table, column]

    def _offer_keys(
        self,
        form: SetupForm,
        choices: StarterChoices,
        number: str,
        place: tuple[str, str],
        kind: Type,
        facts: ColumnFacts | None,
    ) -> tuple[tuple[KeyOption, ...], int]:
        """The values that enough people hold, where there are few different ones; and how many are not offered."""
        if kind is not Type.TEXT or facts is None or self.source.rows is None or facts.distinct > _OFFERED:
            return (), 0
        counts = self._count_holders(choices.person or ROW_UNIT, place)
        if not counts:
            return (), 0
        chosen = set(choices.keys.get(place, form.fields.get(f"key-{number}", ())))
        offered = tuple(KeyOption(value, f"{counts[value]:,}", value in chosen) for value in _select_keys(counts))
        return offered, facts.distinct - len(offered)

    def _list_offered(self, person: str, place: tuple[str, str]) -> tuple[str, ...]:
        """The keys that are offered for a text."""
        facts = self._look(*place)
        if facts is None or facts.distinct > _OFFERED:
            return ()
        return _select_keys(self._count_holders(person, place))

    def _count_holders(self, person: str, place: tuple[str, str]) -> dict[str, int]:
        if (person, place) not in self._holders:
            self._holders[person, place] = count_holders(self.source, person, *place)
        return self._holders[person, place]


def _select_keys(counts: Mapping[str, int]) -> tuple[str, ...]:
    """The values that enough people hold."""
    return tuple(value for value, people in counts.items() if people >= FEWEST_PEOPLE and value.strip())


def _describe_facts(facts: ColumnFacts | None, kind: Type) -> str:
    """What was found of a column, in a few words."""
    if facts is None:
        return ""
    parts = [f"{facts.distinct:,} different"]
    if facts.present < facts.rows:
        parts.append(f"{100 * (1 - facts.present / facts.rows):.2g}% missing")
    return ", ".join(parts)


def _draw_facts(facts: ColumnFacts | None, name: str, kind: Type) -> Markup:
    """A small histogram, with the ends of its middle 98%; nothing for texts that differ too much."""
    if facts is None:
        return Markup()
    counts = facts.bars or tuple(count for _, count in facts.values if facts.distinct <= _OFFERED)
    if not counts:
        return Markup()
    most, wide = max(counts), 100 / len(counts)
    bars = [
        make_element(
            "rect",
            class_="spark-bar",
            x=f"{place * wide:.4g}%",
            width=f"{max(0.5, wide - 0.8):.4g}%",
            y=round(_BAR_HEIGHT * (1 - count / most), 1),
            height=round(_BAR_HEIGHT * count / most, 1),
        )
        for place, count in enumerate(counts)
    ]
    drawing = make_element(
        "svg",
        Markup().join(bars),
        class_="spark",
        height=_BAR_HEIGHT,
        role="img",
        aria_label=f"How {name} is distributed",
    )
    if facts.low is None or facts.high is None:
        return drawing
    ends = make_element("span", _format_end(facts.low, kind)) + make_element("span", _format_end(facts.high, kind))
    return drawing + make_element("span", ends, class_="spark-ends")


def _format_end(value: float, kind: Type) -> str:
    match kind:
        case Type.DATE:
            return str(datetime.date(1970, 1, 1) + datetime.timedelta(days=int(value)))
        case Type.TIMESTAMP:
            moment = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=value)
            return moment.strftime("%Y-%m-%d %H:%M")
    return f"{value:,.6g}"
