"""What the owner's choices would mean, worked out for the page that they are made on.

Every figure of the data is exact and for the owner alone; the text of the policy has none that was not confirmed.
"""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path

from markupsafe import Markup

from tacit.accounting.interpretation import min_guessing_error
from tacit.answers.answer import Answer
from tacit.answers.chart import chart_column
from tacit.answers.render import format_value
from tacit.arithmetic import format_decimal
from tacit.curator.preview import preview_answer
from tacit.engines.scalars import quote_name
from tacit.engines.source_rows import KeyStep, SourceRows
from tacit.errors import ParameterError, TacitError
from tacit.policy.load import load_text
from tacit.policy.model import ROW_UNIT, Policy, Table, Type, UnitForeignKey
from tacit.policy.owner_choices import select_tables
from tacit.policy.promise import describe_guarantee
from tacit.policy.propose import Tables, propose_units
from tacit.policy.template import StarterChoices, render_template
from tacit.serve.console.answer_charts import draw_chart

_ROWS = 12  # of an answer, of which the true numbers are shown beside
_FEW_KEYS = 40  # different texts of a column by which a first question would group


@dataclass(frozen=True)
class SetupSource:
    """Where the data lies and what is in it; `rows` is None where only names and types were read."""

    name: str  # as the policy will have it
    policy: Path  # the file that will be written
    tables: Tables
    rows: SourceRows | None


@dataclass(frozen=True)
class AnswerPreview:
    """A first answer: its question, a chart of each number, and its rows beside the true numbers."""

    sql: str
    epsilon: str
    drawings: tuple[Markup, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class SetupPreview:
    """The policy as it would be written, what it promises, and what a first question would be answered."""

    text: str
    promise: str
    guess: str  # the least error of a guess, in percent
    people: tuple[str, ...]
    left_out: tuple[str, ...]
    empty: tuple[str, ...]  # tables that are left out, because no column of them is ticked
    links: tuple[str, ...]  # keys that are listed, because other tables are reached over them
    answer: AnswerPreview | None
    problem: TacitError | None


def make_preview(source: SetupSource, choices: StarterChoices, group: str, epsilon: str) -> SetupPreview:
    """What choices mean. A policy that cannot be loaded, or a question that is refused, is told as `problem`."""
    text = render_template(source.name, source.tables, choices)
    selected = select_tables(source.tables, choices.person or ROW_UNIT)
    left_out = tuple(name for name in source.tables if name not in selected)
    empty = tuple(name for name in selected if name in choices.without)
    links = tuple(f"{table}.{column}" for table, column in sorted(choices.links))
    promise, answer, problem = "", None, None
    try:
        policy = load_text(text, source.policy)
        promise = describe_guarantee(policy)
        answer = _preview_answer(source, policy, group, epsilon)
    except TacitError as error:
        problem = error
    guess = f"{100 * min_guessing_error(choices.epsilon):.3g}"
    return SetupPreview(
        text, promise, guess, _describe_people(source, choices), left_out, empty, links, answer, problem
    )


def list_next_steps(
    source: SetupSource, choices: StarterChoices, preview: SetupPreview | None
) -> list[tuple[str, str]]:
    """What to do once the policy is written: words, and the commands as a shell takes them."""
    policy, analyst = str(source.policy), choices.analyst
    if preview is not None and preview.answer is not None:
        sql, epsilon = preview.answer.sql, preview.answer.epsilon
    else:
        selected = select_tables(source.tables, choices.person or ROW_UNIT)
        table = next(name for name in selected if name not in choices.without)
        sql, epsilon = f"SELECT COUNT(*) AS row_count FROM {quote_name(table)}", format_decimal(choices.epsilon / 4)
    ask = shlex.join(["tacit", "ask", "-p", policy, "--as", analyst, "--epsilon", epsilon, sql])
    add, serve = (
        shlex.join(["tacit", "analyst", "add", analyst, "-p", policy]),
        shlex.join(["tacit", "serve", "-p", policy]),
    )
    return [
        (
            "See what the policy promises, and whether the data is as declared.",
            shlex.join(["tacit", "check", "-p", policy]),
        ),
        (f"Ask a first question, as {analyst}.", ask),
        ("Let others in.", f"{add}\n{serve}"),
    ]


def list_groupings(source: SetupSource, choices: StarterChoices) -> list[str]:
    """The columns by which a first question may group, as `table.column`: those with public keys first."""
    found: list[tuple[bool, str]] = []
    for table, columns in select_tables(source.tables, choices.person or ROW_UNIT).items():
        for column in columns:
            here = (table, column.name)
            is_named = here not in choices.left_out
            if column.kind in {Type.TEXT, Type.BOOL} and is_named and _has_few(source, *here):
                found.append((here not in choices.keys, f"{table}.{column.name}"))
    return [name for _, name in sorted(found, key=lambda each: each[0])]


def describe_choice(source: SetupSource, choices: StarterChoices, table: str, column: str, kind: Type) -> str:
    """What the choices for a column mean, in a sentence."""
    rows = source.rows
    if bounds := choices.bounds.get((table, column)):
        if rows is None:
            return "Values outside of these are read as the nearest bound."
        return _share(
            rows.count_outside(table, column, bounds), rows, table, "lie outside, and are read as the nearest bound"
        )
    if keys := choices.keys.get((table, column)):
        if rows is None:
            return "All of these are shown, and rows with another value are in no group."
        return _share(rows.count_other(table, column, keys), rows, table, "have another value, and are in no group")
    match kind:
        case Type.INT | Type.FLOAT:
            return "Without bounds they are chosen privately for each question, at a cost."
        case Type.DATE | Type.TIMESTAMP:
            return "Without bounds only days that enough people share are shown."
        case Type.TEXT:
            return "Without public keys only values that enough people share are shown."
    return ""


def count_holders(source: SetupSource, person: str, table: str, column: str) -> dict[str, int]:
    """How many people hold each of the most frequent values of a text, by the unit that the policy will have.

    Nothing where they cannot be counted: no column of the table, and no foreign key, leads to the person.
    """
    if source.rows is None:
        return {}
    if person == ROW_UNIT:
        return source.rows.count_people(table, column, None)
    units = propose_units(source.tables, person)
    steps: list[KeyStep] = []
    at = table
    while at in units:
        unit = units[at].unit
        if isinstance(unit, str):
            return source.rows.count_people(table, column, unit, steps)
        steps.append(KeyStep(unit.column, unit.table, unit.key))
        at = unit.table
    return {}


def _share(some: int, rows: SourceRows, table: str, what: str) -> str:
    total = rows.rows[table]
    if some == 0:
        return "No value lies outside." if "outside" in what else "No row has another value."
    return f"{some:,} of {total:,} rows ({100 * some / total:.2g}%) {what}."


def _has_few(source: SetupSource, table: str, column: str) -> bool:
    if source.rows is None:
        return False
    return 1 < source.rows.describe_column(table, column).distinct <= _FEW_KEYS


def _describe_people(source: SetupSource, choices: StarterChoices) -> tuple[str, ...]:
    """How many people each table has, and how many rows one of them."""
    if source.rows is None or choices.person is None:
        return ()
    found = []
    units = {} if choices.person == ROW_UNIT else propose_units(source.tables, choices.person)
    for table, columns in select_tables(source.tables, choices.person).items():
        if table in choices.without:
            continue
        names = {column.name for column in columns if isinstance(column.kind, Type)}
        unit = units[table].unit if table in units else None
        if choices.person == ROW_UNIT:
            found.append(f"{table}: {source.rows.rows[table]:,} rows, each a person of its own.")
        elif isinstance(unit, str) and unit in names:
            people = source.rows.describe_people(table, unit)
            without = f" {people.without:,} rows have none, and are not counted." if people.without else ""
            found.append(
                f"{table}: {people.people:,} people; half have at most {people.median:,} rows, 19 of 20 at most "
                f"{people.high:,}, one has {people.most:,}.{without}"
            )
        else:
            found.append(f"{table}: reached over a foreign key.")
    return tuple(found)


def _preview_answer(source: SetupSource, policy: Policy, group: str, epsilon: str) -> AnswerPreview | None:
    if source.rows is None or not policy.tables:
        return None
    places = {f"{each.name}.{column.name}": (each, column.name) for each in policy.tables for column in each.columns}
    table, column = places.get(group, (policy.tables[0], ""))
    try:
        price = Decimal(epsilon)
    except InvalidOperation:
        raise ParameterError("epsilon", "the epsilon of the question is not a number", fix="write 0.25") from None
    sql, measures = _write_question(table, column)
    averaged = [name for _, name in measures if name]
    policy = _narrow(policy, table, {column, *averaged})
    answer = preview_answer(policy, source.rows.load_frames([each.name for each in policy.tables]), sql, price)
    true = source.rows.measure_groups(table.name, column, averaged)
    return _show_answer(answer, sql, epsilon, column, true)


def _narrow(policy: Policy, table: Table, names: set[str]) -> Policy:
    """The part of a policy that a question about these columns of a table reads: of a wide file little is copied.

    Its answer has the same distribution: columns that a question does not name enter neither its rows nor its noise.
    """
    tables, needed = [], names
    while True:
        way = table.unit if isinstance(table.unit, UnitForeignKey) else None
        needed = needed | {way.column if way else str(table.unit)}
        tables.append(replace(table, columns=tuple(each for each in table.columns if each.name in needed)))
        if way is None:
            return replace(policy, tables=tuple(tables))
        table, needed = next(each for each in policy.tables if each.name == way.table), {way.key}


def _write_question(table: Table, column: str) -> tuple[str, list[tuple[str, str]]]:
    """A first question about a table: how many rows, and the mean of the first number that has bounds, by a column."""
    number = next(
        (each for each in table.columns if each.type in {Type.INT, Type.FLOAT} and each.lower is not None), None
    )
    measures = [("COUNT(*) AS row_count", "")]
    if number is not None:
        measures.append((f"AVG({quote_name(number.name)}) AS average", number.name))
    listed = ", ".join(measure for measure, _ in measures)
    name = quote_name(table.name)
    if not column:
        return f"SELECT {listed} FROM {name}", measures
    return f"SELECT {quote_name(column)}, {listed} FROM {name} GROUP BY {quote_name(column)}", measures


def _show_answer(
    answer: Answer, sql: str, epsilon: str, column: str, true: dict[str, tuple[float | None, ...]]
) -> AnswerPreview:
    keys = 1 if column else 0
    numbers = answer.headings[keys:]
    rows = []
    for cells in answer.cells()[:_ROWS]:
        label = "" if not column or cells[0].value is None else str(cells[0].value)
        line = [label] if column else []
        exact = true.get(label.lower() if label in {"True", "False"} else label, (None,) * len(numbers))
        for heading, cell, known in zip(numbers, cells[keys:], exact, strict=False):
            line += [format_value(cell.value, heading, cell), _format_true(known)]
        rows.append(tuple(line))
    heads = [column] if column else []
    for heading in numbers:
        heads += [heading.name, "true"]
    drawings = [draw_chart(chart_column(answer, keys + place)) for place in range(len(numbers)) if len(answer)]
    return AnswerPreview(sql, epsilon, tuple(drawings), tuple(heads), tuple(rows))


def _format_true(number: float | None) -> str:
    if number is None:
        return ""
    if not math.isfinite(number):
        return "not a number" if math.isnan(number) else "infinite"
    return f"{number:,.0f}" if number == int(number) else f"{number:,.2f}"
